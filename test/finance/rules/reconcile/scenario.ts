import type { RecordedEvent } from '../../../../src/ledger/rules/event.ts';
import { BooksAtClose } from '../../../../src/finance/rules/reconcile/books-at-close.ts';
import { BridgeBuilder } from '../../../../src/finance/rules/reconcile/bridge.ts';
import { bridgeJson } from '../../../../src/finance/rules/reconcile/bridge-json.ts';
import { classify, strangerOf } from '../../../../src/finance/rules/reconcile/classify.ts';
import { LedgerFacts } from '../../../../src/finance/rules/reconcile/ledger-facts.ts';
import { Matcher } from '../../../../src/finance/rules/reconcile/match.ts';
import { PlainPayments, tallyPlain } from '../../../../src/finance/rules/reconcile/plain-payments.ts';
import { TransferFilter } from '../../../../src/finance/rules/reconcile/transfer-filter.ts';
import type { PaymentFact } from '../../../../src/finance/rules/reconcile/fact.ts';
import { ReopenedQuotes } from '../../../../src/audit/rules/bookkeeping/reopened-quotes.ts';
import {
  openTransactions,
  type OpenTransaction,
} from '../../../../src/finance/rules/reconcile/open-transactions.ts';
import { type ItemFields, Tally } from '../../../../src/finance/rules/reconcile/tally.ts';
import { accountKey, transactionKey } from '../../../../src/finance/rules/reconcile/reconcile.ts';
import { type ChainTransfer, type Evidence } from '../../../../src/payments/rules/chain-transfer.ts';
import { asset, network, otherPayTo, payTo, type Planted } from './builders.ts';

const times = ['2026-11-19T12:00:00.000Z', '2026-11-20T12:00:00.000Z', '2026-11-21T12:00:00.000Z'] as const;
const period = { from: '2026-11-20T00:00:00.000Z', to: '2026-11-21T00:00:00.000Z' };
const blocks = { from: 1_000n, to: 99_999n };

/** A ledger and a chain in which these things happened, reconciled. `turns` mixes the streams. */
export function reconcilePlanted(
  planted: readonly Planted[],
  options: {
    readonly turns?: readonly number[];
    readonly listed?: number;
    readonly isCovered?: boolean;
    /** The greatest number of receipts requested for transfers of unknown senders. */
    readonly receipts?: number;
    /** Every payment is kept as a whole, and nothing is kept as a hash. */
    readonly isWhole?: boolean;
  } = {},
) {
  const { turns = [], listed = 10_000, isCovered = false, receipts = 10_000, isWhole = false } = options;
  const ranges = new Map([[network, { ...blocks, isCovered }]]);
  const events = recorded(planted, turns);
  const reopened = new ReopenedQuotes();
  for (const event of events) reopened.skim(event);
  const factsWith = (forgetPlain: (payment: PaymentFact) => boolean): LedgerFacts => {
    const facts = new LedgerFacts(period, ranges, (digest) => reopened.has(digest), forgetPlain);
    for (const event of events) facts.take(event);
    return facts;
  };
  const books = new BooksAtClose(period, () => true);
  for (const event of events) books.take(event);
  const payees = new Set([`${network}/${payTo}`, `${network}/${otherPayTo}`]);
  const bridge = new BridgeBuilder(payees, listed);
  const tally = new Tally(payees, listed, (...item) => bridge.note(...item));
  const stray = (transfer: ChainTransfer): void => {
    const { name, fields } = strangerOf(transfer, payees);
    tally.addToGroup(name, fields, transfer);
  };
  const plain = new PlainPayments();
  const beside = factsWith((payment) => !isWhole && plain.add(payment));
  const filter = new TransferFilter(beside, plain, payees, { most: listed, stray });
  const transfers = planted
    .flatMap((one) => one.transfers ?? [])
    .toSorted((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
  for (const transfer of transfers) filter.take(transfer);
  const kept = filter.finish();
  const facts = factsWith((payment) => tallyPlain(payment, plain, tally));
  const matcher = new Matcher(facts);
  for (const transfer of kept) matcher.take(transfer);
  const wanted = openTransactions(facts, matcher, payees, receipts);
  const evidence = evidenceOf(planted, wanted);
  const classified = classify({ facts, matcher, evidence, ranges, payees, tally });
  bridge.takeFacts(facts, classified.before, classified.missing);
  /** The bridge of an account that had at the opening what the ledger says. */
  const bridgeOf = (of: typeof account) => {
    const before = classified.ledger.opening.get(accountKey(of)) ?? 0n;
    const booked = books.of(of);
    if (!booked) throw new Error('there are no books');
    const all = { books: booked, lines: bridge.linesOf(of) };
    return bridgeJson(all, before, before, before + tally.net(of));
  };
  return { facts, kept, tally, transfers, wanted, ...classified, bridgeOf };
}

/** What was found: class and quote, or transaction if there is no quote, in the order of their names. */
export function foundIn(tally: Tally): string[] {
  return Object.entries(tally.json())
    .flatMap(([name, { items }]) => items.map((item) => `${name} ${nameOf(item)}`))
    .toSorted();
}

function nameOf({ quote_digest, transaction }: ItemFields): string | undefined {
  return quote_digest ?? transaction;
}

export const account = { network, asset, payTo };
export const key = accountKey(account);

function recorded(planted: readonly Planted[], turns: readonly number[]): RecordedEvent[] {
  const all: Planted['events'][number][] = [];
  for (const phase of [0, 1, 2] as const) {
    const open = planted.map(({ events }) => events.filter((event) => event.phase === phase));
    const queues = open.filter((queue) => queue.length > 0);
    for (let turn = 0; queues.length > 0; turn++) {
      const at = (turns[turn % Math.max(turns.length, 1)] ?? 0) % queues.length;
      const next = queues[at]?.shift();
      if (next) all.push(next);
      if (queues[at]?.length === 0) queues.splice(at, 1);
    }
  }
  const versions = new Map<string, number>();
  return all.map(({ stream, event, phase }, index) => {
    const version = (versions.get(stream) ?? 0) + 1;
    versions.set(stream, version);
    return { ...event, seq: index + 1, stream, version, at: times[phase] };
  });
}

/** Receipts as a node would show them, of the transactions that were asked for. */
function evidenceOf(
  planted: readonly Planted[],
  wanted: readonly OpenTransaction[],
): ReadonlyMap<string, Evidence> {
  const evidenceByTransaction = new Map(
    planted.flatMap(({ evidence = [] }) => evidence.map(({ transaction, is }) => [transaction, is])),
  );
  const moved = planted.flatMap(({ transfers = [] }) => transfers);
  const used = planted.flatMap(({ authorizations = [] }) => authorizations);
  return new Map(
    wanted.map(({ transaction, from }) => {
      // no more is asked for, so no more is shown
      const own = moved.filter((one) => one.transaction === transaction && from.has(one.from));
      const authorizations = used
        .filter(({ transfer }) => own.includes(transfer))
        .map(({ transfer, nonce }) => ({
          transferMethod: 'eip3009' as const,
          asset: transfer.asset,
          payer: transfer.from,
          nonce,
          logIndex: transfer.logIndex,
        }));
      const shown: Evidence = { kind: 'mined', transfers: own, authorizations };
      const absent: Evidence = { kind: 'absent' };
      const is = evidenceByTransaction.get(transaction) ?? (own.length > 0 ? shown : absent);
      return [transactionKey({ network, transaction }), is] as const;
    }),
  );
}

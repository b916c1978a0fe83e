import type { PaymentFact } from './fact.ts';
import type { LedgerFacts } from './ledger-facts.ts';
import type { Matcher } from './match.ts';
import { transactionKey } from './reconcile.ts';
import { type ChainTransfer } from '../../../payments/rules/chain-transfer.ts';

/** A transaction to look at, and for whose transfers. */
export interface OpenTransaction {
  readonly network: string;
  readonly transaction: string;
  /** Whose tokens may have moved in it. */
  readonly from: ReadonlySet<string>;
  /** Whether tokens that the ledger does not name count as well. */
  readonly isAnyToken: boolean;
  /** Its block, if a transfer of it is known. */
  readonly place: Pick<ChainTransfer, 'blockNumber' | 'blockHash'> | undefined;
}

interface Wish {
  readonly network: string;
  readonly transaction: string;
  readonly from: string;
  readonly isAnyToken?: boolean;
  readonly place?: OpenTransaction['place'];
}

/** The transactions that must be looked at: of facts that no log shows, and of unknown transfers. */
export function openTransactions(
  facts: LedgerFacts,
  matcher: Matcher,
  payees: ReadonlySet<string>,
  most: number,
): OpenTransaction[] {
  const wanted = new Map<string, OpenTransaction>();
  const want = ({ network, transaction, from, isAnyToken = false, place }: Wish): void => {
    const key = transactionKey({ network, transaction });
    const known = wanted.get(key);
    wanted.set(key, {
      network,
      transaction,
      from: new Set([...(known?.from ?? []), from]),
      isAnyToken: isAnyToken || (known?.isAnyToken ?? false),
      place: place ?? known?.place,
    });
  };
  for (const payment of matcher.payments) {
    const { network, transaction, payer } = payment;
    if (transaction !== undefined && isWanting(payment, facts, matcher))
      want({ network, transaction, from: payer });
  }
  for (const out of facts.late) want({ ...out, from: out.payTo });
  for (const out of matcher.outs) {
    // a transfer that an operator recorded as unexplained may be a payment: the logs of its transaction say so
    const isRecorded = out.of !== 'refund' && out.of !== 'sweep';
    if (isRecorded || !matcher.placed.has(out)) want({ ...out, from: out.payTo });
  }
  const shown = new Set(matcher.candidates.map(transactionKey));
  for (const { network, operator, contract, transaction } of facts.spends)
    if (transaction !== undefined && payees.has(`${network}/${operator}`))
      if (!shown.has(transactionKey({ network, transaction })))
        want({ network, transaction, from: contract, isAnyToken: true });
  const enough = wanted.size + most;
  const sought = matcher.candidates.filter((transfer) => matcher.isSought(transfer));
  for (const transfer of [...sought, ...matcher.candidates])
    if (wanted.size < enough || wanted.has(transactionKey(transfer)))
      want({ ...transfer, place: { blockNumber: transfer.blockNumber, blockHash: transfer.blockHash } });
  return [...wanted.values()];
}

/** Settled within the period, or recorded too late for it, and not at the place that its event names. */
function isWanting(payment: PaymentFact, facts: LedgerFacts, matcher: Matcher): boolean {
  const isOpen = payment.status === 'settled' && !matcher.placed.has(payment);
  return isOpen && (facts.positionOf(payment) === 'in' || facts.isLate(payment));
}

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { customerOf } from '../../../../src/audit/rules/bookkeeping/tax.ts';
import { type Balance, Balances, type Entry } from '../../../../src/base/values/entry.ts';
import { StatementFold } from '../../../../src/finance/rules/invoices/statement.ts';
import { openBooks } from '../../../../src/finance/use-cases/books/books.ts';
import { type LedgerSource, openDatabaseSource } from '../../../../src/finance/use-cases/books/source.ts';
import { owedBefore } from '../../../../src/finance/use-cases/invoices/owed-before.ts';
import { anyBooks } from '../../../audit/rules/bookkeeping/any-books.ts';
import { propertyRuns } from '../../../support/property-runs.ts';
import type { StreamEvent } from '../../../support/synthetic-ledger.ts';
import { asFile, ledgerOf } from '../books/posted-ledger.ts';

const sender = `0x${'77'.repeat(20)}`;

async function entriesOf(source: LedgerSource, fromMs: number, toMs: number): Promise<Entry[]> {
  const books = await openBooks(source, { fromMs, toMs }, { currency: 'EUR' });
  const parts = await Array.fromAsync(books.parts());
  return parts.flatMap((part) => (part.kind === 'entry' ? part.entry : []));
}

/** What the operator owes each customer by all entries, as `account commodity: atoms`. */
function owedBy(entries: readonly Entry[]): Map<string, string[]> {
  const owed = new Map<string, Balances>();
  for (const entry of entries)
    for (const move of entry.moves) {
      const customer = customerOf(entry, move) ?? '';
      const balances = owed.get(customer) ?? new Balances();
      owed.set(customer, balances);
      balances.post({ ...move, debit: move.credit, credit: move.debit });
    }
  return new Map([...owed].map(([customer, balances]) => [customer, textsOf(balances.list())]));
}

function textsOf(balances: readonly Balance[]): string[] {
  return balances
    .filter(({ account, atoms }) => account.startsWith('Liabilities:') && atoms !== 0n)
    .map(({ account, commodity, atoms }) => `${account} ${commodity.name}: ${atoms}`);
}

/** An account does not use more than it has. */
const credit: StreamEvent = {
  stream: 'account:7',
  event: { type: 'credit_granted', data: { account_id: 7, amount_micros: '900000000' } },
};

/** On a chain the sender of a transfer does not change. */
const fromOneSender = (events: readonly StreamEvent[]): StreamEvent[] =>
  events.map(({ stream, event }) =>
    event.type === 'operator_transfer_recorded'
      ? { stream, event: { ...event, data: { ...event.data, received_from: sender } } }
      : { stream, event },
  );

test('a statement opens and closes with what all entries since the first event owe the customer, for any legal ledger and any period', async () => {
  await fc.assert(
    fc.asyncProperty(anyBooks, fc.tuple(fc.nat(99), fc.nat(99)), async (history, draws) => {
      const { pool } = await ledgerOf([credit, ...fromOneSender(history)]);
      const source = await openDatabaseSource(pool);
      const all = await entriesOf(asFile(source), 0, source.nowMs);
      const times = all.map(({ recordedAt }) => Date.parse(recordedAt));
      const at = (draw: number): number => times[draw % times.length] ?? 0;
      const [fromMs = 0, toMs = 0] = draws.map(at).toSorted((a, b) => a - b);
      const before = (ms: number) => owedBy(all.filter(({ recordedAt }) => Date.parse(recordedAt) < ms));
      const entries = await entriesOf(source, fromMs, toMs);
      for (const customer of owedBy(all).keys()) {
        const fold = new StatementFold(customer, await owedBefore(pool, customer, fromMs, 'EUR'));
        for (const entry of entries) fold.take(entry);
        const { opening, closing } = fold.finish();
        expect([textsOf(opening), textsOf(closing)]).toEqual([
          before(fromMs).get(customer) ?? [],
          before(toMs).get(customer) ?? [],
        ]);
      }
    }),
    propertyRuns(12),
  );
});

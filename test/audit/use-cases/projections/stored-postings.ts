import type { Entry } from '../../../../src/base/values/entry.ts';
import { projectNext } from '../../../../src/audit/use-cases/projections/project.ts';
import { createStreamMemory } from '../../../../src/audit/use-cases/projections/stream-memory.ts';
import { entriesOf } from '../../rules/bookkeeping/support.ts';
import type { TestDatabase } from '../../../support/database.ts';
import { allEvents } from '../../../support/invariants.ts';

export async function projectAll({ pool }: TestDatabase, max = 1_000): Promise<void> {
  const memory = createStreamMemory();
  while ((await projectNext(pool, max, { memory })) > 0);
}

/** In the order of a journal, as the view for auditors shows them. */
export async function storedPostings({ asOwner }: TestDatabase) {
  const { rows } = await asOwner((owner) =>
    owner.query(
      `select seq::int, leg::int, at, type, category, debit, credit, commodity, network, asset, decimals, atoms::text, quote, counterparty,
        derived_to::int from audit.posting order by seq, leg`,
    ),
  );
  return rows as object[];
}

export async function storedBalances({ asOwner }: TestDatabase) {
  const { rows } = await asOwner((owner) =>
    owner.query<Record<'account' | 'commodity' | 'debits' | 'credits' | 'closing', string>>(
      `select day::text, account, commodity, debit_atoms::text as debits, credit_atoms::text as credits, closing_atoms::text as closing
        from audit.balance order by account, commodity, day`,
    ),
  );
  return rows;
}

/** What the postings must be: the entries of a bookkeeper who has read the whole ledger. */
export async function expectedPostings({ db }: TestDatabase, currency: string) {
  const events = await allEvents(db);
  const entries = entriesOf(events);
  return entries.flatMap((entry: Entry) =>
    entry.moves.map(({ debit, credit, commodity, atoms }, index) => ({
      seq: entry.seq,
      leg: index + 1,
      at: new Date(entry.recordedAt),
      type: entry.event,
      category: entry.category,
      debit,
      credit,
      commodity: commodity.network === undefined ? currency : commodity.name,
      network: commodity.network ?? null,
      asset: commodity.asset ?? null,
      decimals: commodity.decimals,
      atoms: String(atoms),
      quote: entry.quoteDigest ?? null,
      counterparty: entry.counterparty ?? null,
      derived_to: events.length,
    })),
  );
}

/** The events that the operator gets an alert about, because a worker could not read or book them. */
export async function unreadable({ pool }: TestDatabase): Promise<number[]> {
  const { rows } = await pool.query<{ seq: number }>(
    `select seq from tollbook.follow_up where topic = 'unreadable' order by seq`,
  );
  return rows.map(({ seq }) => seq);
}

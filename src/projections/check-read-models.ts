import type pg from 'pg';
import { decodeLeaf, isUnreadable, type RecordedEvent, typesListing } from '../domain/events/event.ts';
import { completionRowsOf } from './completion-model.ts';
import { accountCreditOf } from './credit-model.ts';
import { paymentRowsOf } from './read-model.ts';
import type { AccountCredit } from '../store/account-credit.ts';
import { readStreamsUpTo } from '../store/projection.ts';
import {
  countRows,
  type ExpectedRow,
  findStrayPayments,
  findStrayRows,
  findWrongRows,
  findWrongSums,
  type FoldedTable,
  type ReadModelSnapshot,
  readLeavesOf,
  readStreamsOf,
  withReadModels,
  type WrongRow,
} from '../store/read-model-rows.ts';

const eventsAtOnce = 5_000;
const maxWrong = 20;
const creditTypes = typesListing('readModels', 'credit');

/** A row of a read model that is not the fold of the events. */
export interface WrongReadModel {
  readonly table: string;
  /** What identifies it, and what is wrong. */
  readonly words: string;
}

/**
 * Compares every row of the read models with the fold of the events up to the one that they include. An event that cannot be read is
 * reported by the check of the events, and its stream is left out here. At most twenty rows are named. Writes nothing.
 */
export function checkReadModels(pool: pg.Pool): Promise<WrongReadModel[]> {
  return withReadModels(pool, async (snapshot) => {
    const wrong: WrongRow[] = [];
    const counts = { paid_call: 0, completion: 0, account_credit: 0 };
    for (let after = 0; after < snapshot.seq && wrong.length < maxWrong; after += eventsAtOnce) {
      const last = Math.min(after + eventsAtOnce, snapshot.seq);
      const expected = await foldStreams(snapshot, after, last);
      wrong.push(...(await findWrongRows(snapshot, 'payment', expected.payment)));
      const started = expected.payment.map(({ seq }) => Number(seq));
      wrong.push(...(await findStrayPayments(snapshot, after, last, started)));
      for (const table of ['paid_call', 'completion'] as const) {
        counts[table] += expected[table].length;
        wrong.push(...(await findWrongRows(snapshot, table, expected[table])));
      }
    }
    // payments behind the last event that is included
    wrong.push(...(await findStrayPayments(snapshot, snapshot.seq, Number.MAX_SAFE_INTEGER, [])));
    const accounts = await foldAccounts(snapshot);
    counts.account_credit = accounts.length;
    wrong.push(...(await findWrongRows(snapshot, 'account_credit', accounts)));
    for (const table of ['paid_call', 'completion', 'account_credit'] as const)
      wrong.push(...(await findStray(snapshot, table, counts[table])));
    // sums of rows that are wrong themselves say nothing more
    if (wrong.length === 0) wrong.push(...(await findWrongSums(snapshot)));
    return wrong.slice(0, maxWrong).map(inWords);
  });
}

/** More rows than expected: at least one has no origin, or is there twice. */
async function findStray(
  snapshot: ReadModelSnapshot,
  table: Exclude<FoldedTable, 'payment'>,
  expected: number,
): Promise<WrongRow[]> {
  const stored = await countRows(snapshot, table);
  if (stored <= expected) return [];
  const stray = await findStrayRows(snapshot, table);
  return stray.length > 0 ? stray : [{ table, expected: { rows: expected }, stored: { rows: stored } }];
}

/** The rows of the payments and completions that begin within a part of the ledger, as its events up to the snapshot's last make them. */
async function foldStreams(
  snapshot: ReadModelSnapshot,
  after: number,
  last: number,
): Promise<Readonly<Record<'payment' | 'paid_call' | 'completion', ExpectedRow[]>>> {
  const isHere = ({ seq }: { readonly seq: number }): boolean => seq > after && seq <= last;
  const quotes = await readStreamsOf(snapshot, ['settlement_started', 'payment_recovered'], after, last);
  const rows = (await readWhole(snapshot, quotes)).map(paymentRowsOf);
  const chats = await readStreamsOf(snapshot, ['chat_admitted'], after, last);
  const completions = completionRowsOf(await readWhole(snapshot, chats));
  return {
    payment: rows.flatMap(({ payments }) =>
      payments.filter(isHere).map((row) => ({
        ...row,
        asset: bytes(row.asset),
        payer: bytes(row.payer),
        pay_to: bytes(row.pay_to),
        transaction: bytes(row.transaction),
        refund_transaction: bytes(row.refund_transaction),
      })),
    ),
    paid_call: rows.flatMap(({ calls }) => calls.filter(isHere).map((row) => ({ ...row }))),
    completion: completions.filter(isHere).map((row) => ({ ...row })),
  };
}

/** A stream at a time where one of them cannot be read. */
async function readWhole(
  { client, seq }: ReadModelSnapshot,
  streams: readonly string[],
): Promise<RecordedEvent[][]> {
  try {
    return await readStreamsUpTo(client, streams, seq);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    if (streams.length <= 1) return [];
    const half = streams.length >> 1;
    const parts = [streams.slice(0, half), streams.slice(half)];
    const read: RecordedEvent[][] = [];
    for (const part of parts) read.push(...(await readWhole({ client, seq, generation: 0 }, part)));
    return read;
  }
}

/** The credit of every account by all events: what each part of the ledger adds. */
async function foldAccounts(snapshot: ReadModelSnapshot): Promise<ExpectedRow[]> {
  const accounts = new Map<number, AccountCredit>();
  for (let after = 0; after < snapshot.seq; after += eventsAtOnce) {
    const leaves = await readLeavesOf(snapshot, creditTypes, after, eventsAtOnce);
    const events = leaves.flatMap((leaf) => readable(leaf) ?? []);
    for (const more of accountCreditOf(events)) {
      const known = accounts.get(more.account_id);
      accounts.set(more.account_id, known ? added(known, more) : more);
    }
  }
  return [...accounts.values()].map((row) => ({ ...row }));
}

function readable(leaf: string): RecordedEvent | undefined {
  try {
    return decodeLeaf(leaf);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return undefined;
  }
}

function added(known: AccountCredit, more: AccountCredit): AccountCredit {
  const sum = (name: 'balance' | 'held' | 'granted' | 'topped_up' | 'captured' | 'expired'): string =>
    String(BigInt(known[name]) + BigInt(more[name]));
  return {
    account_id: known.account_id,
    name: known.name ?? more.name,
    balance: sum('balance'),
    held: sum('held'),
    granted: sum('granted'),
    topped_up: sum('topped_up'),
    captured: sum('captured'),
    expired: sum('expired'),
    last_seq: more.last_seq,
  };
}

/** As PostgreSQL reads bytes. */
function bytes(hex: string | null): string | null {
  return hex === null ? null : `\\x${hex.slice(2)}`;
}

/** What identifies a row of these tables to a person. */
const identifying = ['seq', 'call_id', 'account_id', 'day', 'model', 'network', 'asset', 'pay_to'] as const;

function inWords({ table, expected, stored }: WrongRow): WrongReadModel {
  const row = { ...expected, ...stored };
  const name = identifying
    .flatMap((column) => (column in row ? `${column} ${String(row[column])}` : []))
    .slice(0, 3)
    .join(', ');
  if (!stored) return { table, words: `the row of ${name} is missing` };
  if (!expected) return { table, words: `the row of ${name} is of no event` };
  const differing = Object.keys(expected).filter(
    (column) => column in stored && JSON.stringify(expected[column]) !== JSON.stringify(stored[column]),
  );
  const changes = differing.map(
    (column) =>
      `${column} is ${JSON.stringify(stored[column])}, by the events ${JSON.stringify(expected[column])}`,
  );
  return { table, words: [name, ...changes].filter((part) => part !== '').join(': ') };
}

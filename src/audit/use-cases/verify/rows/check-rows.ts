import type pg from 'pg';
import {
  decodeLeaf,
  isUnreadable,
  type RecordedEvent,
  typesListing,
} from '../../../../ledger/rules/event.ts';
import { DamagedLedgerError } from '../../../../ledger/store/export.ts';
import { readNextSeq, readStreamsUpTo } from '../../../../ledger/store/projection.ts';
import { findOtherCalls, countOutbox, findWrongSmallRows } from '../../../../calls/store/call-rows.ts';
import { readKeys, readOperators, readTokens } from '../../../../ledger/store/right-rows.ts';
import {
  countRows,
  findOtherRows,
  findStrayPayments,
  findStrayRows,
  findWrongRows,
  missingIn,
  type RowSnapshot,
  readLeavesOf,
  readStreamsOf,
  withStoredRows,
  type WrongRow,
  findWrongSums,
} from '../../../../ledger/store/stored-rows.ts';
import { BookComparison } from './book-rows.ts';
import { ClaimComparison } from './compare-claims.ts';
import { compareCalls } from './compare-calls.ts';
import { CreditRows } from './credit-rows.ts';
import { foldPart, type LedgerPart } from './fold-part.ts';
import { GivenRights, rightTypes } from './right-rows.ts';
import { claimingTypes } from './stream-claims.ts';

const eventsAtOnce = 5_000;
const maxWrong = 20;
const creditTypes = typesListing('readModels', 'credit');
const beginningTypes = [...claimingTypes, 'chat_admitted'];
const generatedTables = ['paid_call', 'completion', 'account_credit'] as const;

/** A row that differs from the fold of the events. */
export interface WrongRowInWords {
  readonly table: string;
  /** Its key, and the difference. */
  readonly words: string;
}

/**
 * Compares the rows of every table that follow from events with these: the read models up to their cursor, all others up to the last
 * event. `test/audit/use-cases/verify/table-checks.ts` states the compared columns of each table. An event that cannot be read is reported by the check of the
 * events, and its stream is left out here. At most twenty rows are named. Writes nothing.
 */
export function checkRows(pool: pg.Pool): Promise<WrongRowInWords[]> {
  return nameDamage(compareRows(pool, 'all'));
}

/** The same only for the read models. */
export function checkReadModels(pool: pg.Pool): Promise<WrongRowInWords[]> {
  return nameDamage(compareRows(pool, 'read_models'));
}

async function nameDamage(comparison: Promise<WrongRowInWords[]>): Promise<WrongRowInWords[]> {
  try {
    return await comparison;
  } catch (error) {
    if (!(error instanceof DamagedLedgerError)) throw error;
    const [table = '', words = ''] = error.message.split(': ');
    return [{ table, words }];
  }
}

function compareRows(pool: pg.Pool, tables: 'all' | 'read_models'): Promise<WrongRowInWords[]> {
  return withStoredRows(pool, async (snapshot) => {
    const wrong: WrongRow[] = [];
    const credit = new CreditRows(snapshot.seq);
    const counts = { paid_call: 0, completion: 0, account_credit: 0 };
    const others = new OtherTables(snapshot);
    const books = new BookComparison(snapshot, {
      decode: readable,
      readStreams: (streams) => readWhole(snapshot, streams),
    });
    const isEnough = (): boolean => wrong.length >= maxWrong;
    for (let next = await readNextSeq(snapshot.client, 0); next !== undefined && !isEnough();) {
      const after = next - 1;
      const last = Math.min(after + eventsAtOnce, snapshot.head);
      const begun = await readBegun(snapshot, after, last);
      const part = foldPart(begun, { after, last, cursor: snapshot.seq });
      wrong.push(...(await findWrongRows(snapshot, 'payment', part.payments)));
      const started = part.payments.map(({ seq }) => Number(seq));
      wrong.push(...(await findStrayPayments(snapshot, after, last, started)));
      for (const table of ['paid_call', 'completion'] as const) {
        const wrongOfTable = await findWrongRows(snapshot, table, part[table]);
        counts[table] += part[table].length - missingIn(wrongOfTable);
        wrong.push(...wrongOfTable);
      }
      if (tables === 'all') wrong.push(...(await others.compare(part)));
      wrong.push(...(await books.compare(last, begun)));
      credit.apply((await readLeavesOf(snapshot, creditTypes, after, last)).flatMap(readable));
      // an event whose place was changed may be far away
      next = await readNextSeq(snapshot.client, last);
    }
    // a fold that was not read to its end knows neither all rows nor how many there are
    if (isEnough()) return wrong.slice(0, maxWrong).map(inWords);
    // payments before the first event and after the last one
    wrong.push(...(await findStrayPayments(snapshot, Number.MIN_SAFE_INTEGER, 0, [])));
    wrong.push(...(await findStrayPayments(snapshot, snapshot.head, Number.MAX_SAFE_INTEGER, [])));
    const wrongCredit = await findWrongRows(snapshot, 'account_credit', credit.readModel());
    counts.account_credit = credit.readModel().length - missingIn(wrongCredit);
    wrong.push(...wrongCredit);
    for (const table of generatedTables) wrong.push(...(await findStray(snapshot, table, counts[table])));
    wrong.push(...(await books.finish()));
    if (tables === 'all')
      wrong.push(...(await findWrongCredit(snapshot, credit)), ...(await others.finish()));
    // sums of rows that are wrong themselves say nothing more
    if (wrong.length === 0) wrong.push(...(await findWrongSums(snapshot)));
    return wrong.slice(0, maxWrong).map(inWords);
  });
}

/** The tables other than the read models and credit. */
class OtherTables {
  readonly #snapshot: RowSnapshot;
  readonly #claims: ClaimComparison;
  readonly #callIds: number[] = [];
  #missingCalls = 0;
  readonly #holds: string[] = [];

  constructor(snapshot: RowSnapshot) {
    this.#snapshot = snapshot;
    this.#claims = new ClaimComparison(snapshot);
  }

  /** Compares the rows that begin within a part of the ledger. */
  async compare(part: LedgerPart): Promise<WrongRow[]> {
    const outbox = await compareCalls(this.#snapshot, part);
    for (const callId of outbox.callIds) this.#callIds.push(callId);
    this.#missingCalls += missingIn(outbox.wrong.filter(({ table }) => table === 'call'));
    for (const { chat_id: chatId } of part.holds) this.#holds.push(chatId);
    return [
      ...outbox.wrong,
      ...(await this.#claims.compare(part.claims, outbox.payments)),
      ...(await findWrongRows(this.#snapshot, 'chat_hold', part.holds)),
    ];
  }

  /** Rows that no part has, and tables that are compared in one step. */
  async finish(): Promise<WrongRow[]> {
    const snapshot = this.#snapshot;
    const wrong = await findOtherRows(snapshot, 'chat_hold', this.#holds);
    if ((await countOutbox(snapshot)) > this.#callIds.length - this.#missingCalls)
      wrong.push(...(await findOtherCalls(snapshot, this.#callIds)));
    wrong.push(...(await this.#claims.findStray((streams) => readWhole(snapshot, streams))));
    const given = new GivenRights(
      (await readLeavesOf(snapshot, rightTypes, 0, snapshot.head)).flatMap(readable),
    );
    wrong.push(
      ...given.wrongTokens(await readTokens(snapshot)),
      ...given.wrongKeys(await readKeys(snapshot)),
      ...given.wrongOperators(await readOperators(snapshot)),
    );
    wrong.push(...(await findWrongSmallRows(snapshot)));
    return wrong;
  }
}

/** No event names the account of a user who never had credit. */
const isNamed = '(s.recorded_at is not null or (s.balance, s.held, s.used) <> (0, 0, 0))';

/** Accounts, and the requests that bought credit; those of operators have no colon, and no event names them. */
async function findWrongCredit(snapshot: RowSnapshot, credit: CreditRows): Promise<WrongRow[]> {
  const [accounts, requests] = [credit.accounts(), credit.requests()];
  const ids = accounts.map(({ account_id: id }) => id);
  const requestIds = requests.map(({ request_id: id }) => String(id));
  return [
    ...(await findWrongRows(snapshot, 'account', accounts)),
    ...(await findOtherRows(snapshot, 'account', ids, isNamed)),
    ...(await findWrongRows(snapshot, 'credit_request', requests)),
    ...(await findOtherRows(snapshot, 'credit_request', requestIds, `position(':' in s.request_id) > 0`)),
  ];
}

/** More rows than expected: at least one has no origin, or is there twice. */
async function findStray(
  snapshot: RowSnapshot,
  table: (typeof generatedTables)[number],
  expected: number,
): Promise<WrongRow[]> {
  const stored = await countRows(snapshot, table);
  if (stored <= expected) return [];
  const stray = await findStrayRows(snapshot, table);
  return stray.length > 0 ? stray : [{ table, expected: { rows: expected }, stored: { rows: stored } }];
}

/** Whole streams of the entities that begin within a part of the ledger, in the order in which they began. */
async function readBegun(snapshot: RowSnapshot, after: number, last: number): Promise<RecordedEvent[][]> {
  const streams = await readWhole(snapshot, await readStreamsOf(snapshot, beginningTypes, after, last));
  return streams.toSorted(([a], [b]) => (a?.seq ?? 0) - (b?.seq ?? 0));
}

/** A stream at a time if one of them cannot be read. */
async function readWhole(
  { client, head }: Pick<RowSnapshot, 'client' | 'head'>,
  streams: readonly string[],
): Promise<RecordedEvent[][]> {
  try {
    return await readStreamsUpTo(client, streams, head);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    if (streams.length <= 1) return [];
    const half = streams.length >> 1;
    const read: RecordedEvent[][] = [];
    for (const part of [streams.slice(0, half), streams.slice(half)])
      read.push(...(await readWhole({ client, head }, part)));
    return read;
  }
}

function readable(leaf: string): RecordedEvent[] {
  try {
    return [decodeLeaf(leaf)];
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return [];
  }
}

/** What identifies a row of these tables to a person. */
const identifying = [
  'seq',
  'leg',
  'call_id',
  'account_id',
  'kind',
  'stream',
  'chat_id',
  'request_id',
  'token_id',
  'key_id',
  'name',
  'id',
  'topic',
  'day',
  'account',
  'model',
  'network',
  'asset',
  'pay_to',
  'origin',
  'size',
  'type',
  'lane_id',
  'caller',
  'nonce_sha256',
  'key',
] as const;

function inWords({ table, expected, stored }: WrongRow): WrongRowInWords {
  const row = { ...expected, ...stored };
  const name = identifying
    .flatMap((column) => {
      const value = row[column];
      if (value === undefined) return [];
      return `${column} ${typeof value === 'string' ? value : JSON.stringify(value)}`;
    })
    .slice(0, 3)
    .join(', ');
  if (!stored) return { table, words: `the row of ${name} is missing` };
  if (!expected) return { table, words: `the row of ${name} belongs to no event` };
  const differing = Object.keys(expected).filter(
    (column) => column in stored && JSON.stringify(expected[column]) !== JSON.stringify(stored[column]),
  );
  const changes = differing.map(
    (column) =>
      `${column} is ${JSON.stringify(stored[column])}, by the events ${JSON.stringify(expected[column])}`,
  );
  return { table, words: [name, ...changes].filter((part) => part !== '').join(': ') };
}

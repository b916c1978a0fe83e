import type pg from 'pg';
import { type CreditParts, isParted } from '../../../accounts/rules/credit/credit-parts.ts';
import { Balances, type Commodity, type Entry } from '../../../base/values/entry.ts';
import { decodeLeaf, isUnreadable, type RecordedEvent } from '../../../ledger/rules/event.ts';
import { type PostingRow, readBalances, readPostings } from '../../../ledger/store/book-rows.ts';
import { countEvents, type LedgerPart } from '../../../ledger/store/export.ts';
import { readNext, readProjection } from '../../../ledger/store/projection.ts';
import { readFirstEvents } from '../../../ledger/store/streams.ts';
import { accounts } from '../../rules/bookkeeping/account.ts';
import { BooksError } from '../../rules/bookkeeping/books-error.ts';
import { bookStep, type BookStep } from '../../rules/bookkeeping/book-step.ts';
import { currencyCommodity } from '../../rules/bookkeeping/commodity.ts';
import {
  completeStep,
  creditKey,
  dependsOnStream,
  type KnownBooks,
  postingsOf,
  readBooks,
} from './book-model.ts';
import { projectedTypes } from './project.ts';
import { createStreamMemory, type StreamMemory } from './stream-memory.ts';

const eventsAtOnce = 1_000;
const noStep: BookStep = { past: [], used: new Map(), next: [] };

/** The books that the projector has posted. Each commodity is one object. */
export interface PostedBooks {
  /** Of credit; undefined if the ledger does not say it. */
  readonly currency: string | undefined;
  /** The balances at the first moment of a day, `YYYY-MM-DD` (UTC), and then of a part of the ledger; those of 0 are left out. */
  balances(day: string, part: LedgerPart): Promise<Balances>;
  /**
   * The entries of a part of the ledger: the postings, with what their events say of them. Memory does not grow with the part.
   * @throws BooksError where postings and events differ, or an event is missing, unreadable or contradicts those before it
   */
  entries(part: LedgerPart): AsyncGenerator<Entry>;
}

/**
 * Opens the posted books of a ledger, of which every part that is read has been projected.
 * @param given the currency of credit, for a ledger that does not say it
 */
export async function openPostedBooks(pool: pg.Pool, given?: string): Promise<PostedBooks> {
  const { currency } = await inGeneration(pool, (generation) => readBooks(pool, generation, noStep));
  const known = new Map<string, Commodity>([[creditKey, currencyCommodity(currency ?? given)]]);
  const commodityOf = (key: string, { state }: Pick<KnownBooks, 'state'>): Commodity => {
    if (!known.has(key))
      for (const [one, commodity] of state.commodities.list()) if (!known.has(one)) known.set(one, commodity);
    const commodity = known.get(key);
    if (!commodity) throw new Error(`the books have no commodity ${key}`);
    return commodity;
  };
  return {
    currency,
    async balances(day, { after, last }) {
      const { rows, books } = await inGeneration(pool, async (generation) => ({
        rows: await readBalances(pool, generation, day, after, last),
        books: await readBooks(pool, generation, noStep),
      }));
      const balances = new Balances();
      for (const { account, commodity, atoms } of rows)
        balances.add(account, commodityOf(commodity, books), BigInt(atoms));
      return balances;
    },
    async *entries({ after, last }) {
      const memory = createStreamMemory();
      for (let from = after; from < last; from += eventsAtOnce) {
        const part = { after: from, last: Math.min(from + eventsAtOnce, last) };
        const read = await inGeneration(pool, (generation) => readPart(pool, generation, part, memory));
        yield* entriesOf(read, (key) => commodityOf(key, read.books));
      }
    },
  };
}

/** Reads from the active generation, and again if another one became the active one meanwhile: the former one may be pruned. */
async function inGeneration<T>(pool: pg.Pool, read: (generation: number) => Promise<T>): Promise<T> {
  for (;;) {
    const { generation } = await readProjection(pool);
    const found = await read(generation);
    if ((await readProjection(pool)).generation === generation) return found;
  }
}

/** The postings of a part, and what their entries are made of. */
interface PartRead {
  readonly postings: readonly PostingRow[];
  readonly step: BookStep;
  readonly books: KnownBooks;
}

async function readPart(
  pool: pg.Pool,
  generation: number,
  { after, last }: LedgerPart,
  memory: StreamMemory,
): Promise<PartRead> {
  const postings = await readPostings(pool, generation, after, last);
  if ((await countEvents(pool, after, last)) !== last - after)
    throw new BooksError(last, `it, or one of the ${last - after - 1} events before it, is missing`);
  const next = await readNext(pool, after, last - after, projectedTypes);
  try {
    const events = (next?.leaves ?? []).map(decodeLeaf);
    const streams = await memory.complete(pool, events.filter(dependsOnStream), last);
    const step = await completeStep(pool, { generation, after, last, events, streams });
    const openings = await readOpenings(pool, step.next);
    const past = [...step.past, ...openings.filter(({ seq }) => seq <= after)];
    const books = await readBooks(pool, generation, step);
    return { postings, step: { ...step, past }, books };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    throw new BooksError(last, 'it, or one of the events before it, cannot be read');
  }
}

/** The events that opened the accounts whose credit is moved: they have their names. */
function readOpenings(pool: pg.Pool, next: readonly RecordedEvent[]): Promise<readonly RecordedEvent[]> {
  const ids = new Set(next.flatMap((event) => (isParted(event) ? event.data.account_id : [])));
  if (ids.size === 0) return Promise.resolve([]);
  return readFirstEvents(
    pool,
    [...ids].map((id) => `account:${id}`),
  );
}

function* entriesOf(
  { postings, step, books: { state, currency } }: PartRead,
  commodityOf: (key: string) => Commodity,
): Generator<Entry> {
  const posted = Map.groupBy(postings, ({ seq }) => seq);
  const used = new Map(step.used);
  for (const event of step.next) {
    if (!isParted(event)) continue;
    const parts = creditIn(posted.get(event.seq) ?? []);
    if (parts.granted + parts.bought !== BigInt(event.data.amount_micros)) throw differing(event.seq);
    used.set(event.seq, parts);
  }
  const booked = bookStep(state, currency, { ...step, used });
  const [contradicting] = booked.unbooked;
  if (contradicting !== undefined) throw new BooksError(contradicting, 'it contradicts the events before it');
  for (const entry of booked.entries) {
    const seq = entry.seq ?? 0;
    const moves = posted.get(seq) ?? [];
    posted.delete(seq);
    if (textOf(moves) !== textOf(postingsOf([entry], state))) throw differing(seq);
    yield {
      ...entry,
      moves: moves.map(({ debit, credit, commodity, atoms }) => ({
        debit,
        credit,
        commodity: commodityOf(commodity),
        atoms: BigInt(atoms),
      })),
    };
  }
  for (const seq of posted.keys()) throw differing(seq);
}

function differing(seq: number): BooksError {
  return new BooksError(seq, 'its postings are not those that the events give');
}

function textOf(postings: readonly PostingRow[]): string {
  return JSON.stringify(
    postings.map(({ seq, leg, category, debit, credit, commodity, atoms, quote }) => [
      seq,
      leg,
      category,
      debit,
      credit,
      commodity,
      atoms,
      quote,
    ]),
  );
}

/** The granted and the bought credit that an event moved, by its postings. */
function creditIn(moves: readonly PostingRow[]): CreditParts {
  const sum = (account: string): bigint =>
    moves
      .filter(({ debit, credit }) => debit === account || credit === account)
      .reduce((all, { atoms }) => all + BigInt(atoms), 0n);
  return { granted: sum(accounts.grantedCredit), bought: sum(accounts.boughtCredit) };
}

import type pg from 'pg';
import { decodeLeaf, isUnreadable, typesListing } from '../../../ledger/rules/event.ts';
import { poll } from '../../../base/runtime/poll.ts';
import { readCounters } from '../../../ledger/store/counters.ts';
import { isDataError, isDenied } from '../../../ledger/store/database.ts';
import type { LedgerReader } from '../../../ledger/store/ledger.ts';
import { typesOfBooksAlone } from '../../rules/bookkeeping/book-step.ts';
import { noteUnreadable } from '../../../payments/store/follow-ups.ts';
import { type BookDifference, compareBooks } from '../../../ledger/store/book-rows.ts';
import {
  activateProjection,
  applyProjection,
  beginProjection,
  isBuildingPostings,
  type Projection,
  readNext,
  readNextSeq,
  readProjection,
  pruneProjections,
} from '../../../ledger/store/projection.ts';
import {
  bookRowsOf,
  completeStep,
  dependsOnStream,
  isTransfer,
  readBooks,
  type StepRead,
} from './book-model.ts';
import { completionRowsOf, accountCreditOf, paymentRowsOf } from './read-model.ts';
import { createStreamMemory, type StreamMemory } from './stream-memory.ts';
import { usageChanges } from './usage-model.ts';

const readAtOnce = 1_000;
const sweptAtOnce = 10_000;
/** The types of events that change each of the read models. */
export const projectedTypes = {
  payments: typesListing('readModels', 'payments'),
  credit: typesListing('readModels', 'credit'),
  usage: typesListing('readModels', 'usage'),
  books: typesOfBooksAlone,
} as const;
const creditTypes: ReadonlySet<string> = new Set(projectedTypes.credit);

export interface ProjectOptions {
  /** By default the active one. */
  readonly generation?: number;
  /** Kept from step to step: without it, every stream is read from its first event. */
  readonly memory?: StreamMemory;
}

/**
 * Applies the next events to a generation of the read models. Returns the number of events
 * applied: 0 if there was none, or if another process has applied them (compare-and-swap on the position).
 *
 * If an event cannot be read, fewer are tried, down to that event alone: it is passed over, and the operator gets an alert.
 * One event must not stop the read models; the next event of its stream is passed over too. An event that contradicts those before it
 * gets the same alert, and no postings.
 */
export async function projectNext(pool: pg.Pool, max: number, options: ProjectOptions = {}): Promise<number> {
  const projection = await readProjection(pool, options.generation);
  try {
    return await project(pool, projection, max, options.memory ?? createStreamMemory());
  } catch (error) {
    if (!isUnreadable(error) && !isDataError(error)) throw error;
    return max > 1 ? projectNext(pool, max >> 1, options) : passOver(pool, projection);
  }
}

async function project(
  pool: pg.Pool,
  projection: Projection,
  max: number,
  memory: StreamMemory,
): Promise<number> {
  const next = await readNext(pool, projection.seq, max, projectedTypes);
  if (!next) return 0;
  const { last } = next;
  const events = next.leaves.map(decodeLeaf);
  const ofCredit = events.filter(({ type }) => creditTypes.has(type));
  const streams = await memory.complete(pool, events.filter(dependsOnStream), last);
  const {
    chats = [],
    transfers: _,
    quotes = [],
  } = Object.groupBy(streams, ([first]) => kindOf(first?.stream ?? ''));
  const rows = quotes.map(paymentRowsOf);
  const { generation, seq: after } = projection;
  const booked = projection.hasPostings
    ? await bookNext(pool, { generation, after, last, events, streams })
    : undefined;
  const isOurs = await applyProjection(pool, projection, last, {
    payments: rows.flatMap(({ payments }) => payments),
    calls: rows.flatMap(({ calls, withdrawn }) => [...calls, ...withdrawn]),
    accounts: accountCreditOf(ofCredit),
    usage: usageChanges(chats, projection.seq),
    completions: completionRowsOf(chats),
    books: booked?.rows ?? null,
  });
  if (!isOurs) return 0;
  for (const seq of booked?.unbooked ?? []) await noteUnreadable(pool, seq);
  return last - projection.seq;
}

function kindOf(stream: string): 'chats' | 'transfers' | 'quotes' {
  if (stream.startsWith('chat:')) return 'chats';
  return isTransfer(stream) ? 'transfers' : 'quotes';
}

async function bookNext(pool: pg.Pool, read: StepRead) {
  const step = await completeStep(pool, read);
  const { generation } = read;
  return bookRowsOf(pool, generation, await readBooks(pool, generation, step), step);
}

const nothingBooked = {
  accounts: [],
  postings: [],
  commodities: [],
  payees: [],
  credit: [],
  items: [],
  ended_items: [],
};

/** Leaves out the next event, which cannot be read. */
async function passOver(pool: pg.Pool, projection: Projection): Promise<number> {
  const last = await readNextSeq(pool, projection.seq);
  if (last === undefined) return 0;
  await noteUnreadable(pool, last);
  const isOurs = await applyProjection(pool, projection, last, {
    payments: [],
    calls: [],
    accounts: [],
    usage: [],
    completions: [],
    books: projection.hasPostings ? nothingBooked : null,
  });
  return isOurs ? 1 : 0;
}

/** A gateway applies its events within a second. */
const patienceMs = 5_000;
const askEveryMs = 100;

/**
 * Brings the read models up to the current end of the ledger. Other processes may do the same concurrently; if this user may only
 * read, they alone.
 * @throws if this user may only read, and no other process does it within some seconds
 */
export async function projectToHead(ledger: LedgerReader): Promise<void> {
  const { asOfSeq } = await readCounters(ledger.db);
  const memory = createStreamMemory();
  const isBehind = async (): Promise<boolean> => (await readProjection(ledger.pool)).seq < asOfSeq;
  try {
    while (await isBehind()) await projectNext(ledger.pool, readAtOnce, { memory });
  } catch (error) {
    if (!isDenied(error)) throw error;
    const pauses = { firstMs: askEveryMs, longestMs: askEveryMs };
    if (await poll(isBehind, { until: (behind) => !behind, timeoutMs: patienceMs, pauses }))
      throw new Error(
        'the read models do not have the newest events yet, and a user who may only read cannot add them: start a gateway, or run ' +
          '`tollbook projections rebuild` with the gateway role. Then run the command again',
        { cause: error },
      );
  }
}

/**
 * Adds postings and open items to a ledger whose read models an earlier version began or moved: builds another generation and activates it, a step at each call.
 * The old one is read and kept up until then. The answer: whether there is more to do at once. If the process ends before, another one
 * begins again.
 */
export function addPostings(pool: pg.Pool, max: number): () => Promise<boolean> {
  const memory = createStreamMemory();
  let generation: number | undefined;
  return async () => {
    if ((await readProjection(pool)).hasPostings) generation = undefined;
    else if (generation !== undefined || !(await isBuildingPostings(pool))) {
      generation ??= await beginProjection(pool);
      const isBehind = (await projectNext(pool, max, { generation, memory })) === max;
      const replaced = isBehind ? undefined : await activateProjection(pool, generation);
      if (replaced !== undefined) while ((await pruneProjections(pool, replaced, sweptAtOnce)) > 0);
      return isBehind;
    }
    return false;
  };
}

export interface Rebuilt {
  readonly seq: number;
  /** The first ones; none if the old generation had no postings. */
  readonly differences: readonly BookDifference[];
}

/**
 * Builds a new generation of the read models from the first event and activates it when it has caught up. The old generation
 * is read until then. Returns the position up to which the new one was built, and how the books of both differ up to the end of the
 * old one: a rebuild is the proof of postings, balances and open items.
 */
export async function rebuildProjections(
  pool: pg.Pool,
  max: number,
  onProgress: (seq: number) => void,
): Promise<Rebuilt> {
  const generation = await beginProjection(pool);
  const memory = createStreamMemory();
  for (;;) {
    const read = await projectNext(pool, max, { generation, memory });
    const { seq } = await readProjection(pool, generation);
    onProgress(seq);
    // a full batch means that it still lags far
    const replaced = read < max ? await activateProjection(pool, generation) : undefined;
    if (replaced === undefined) continue;
    // the replaced generation does not change any more
    const { hasPostings } = await readProjection(pool, replaced);
    const differences = hasPostings ? await compareBooks(pool, replaced, generation) : [];
    while ((await pruneProjections(pool, replaced, sweptAtOnce)) > 0);
    return { seq, differences };
  }
}

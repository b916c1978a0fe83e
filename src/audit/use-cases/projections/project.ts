import type pg from 'pg';
import { decodeLeaf, isUnreadable, typesListing } from '../../../ledger/rules/event.ts';
import { isTriggeredStream } from '../../../base/values/triggers/trigger.ts';
import { poll } from '../../../base/runtime/poll.ts';
import { readCounters } from '../../../ledger/store/counters.ts';
import { isDataError, isDenied } from '../../../ledger/store/database.ts';
import type { LedgerReader } from '../../../ledger/store/ledger.ts';
import { noteUnreadable } from '../../../payments/store/follow-ups.ts';
import {
  activateProjection,
  applyProjection,
  beginProjection,
  type Projection,
  readNext,
  readNextSeq,
  readProjection,
  pruneProjections,
} from '../../../ledger/store/projection.ts';
import { completionRowsOf, accountCreditOf, paymentRowsOf } from './read-model.ts';
import { createStreamMemory, type StreamMemory } from './stream-memory.ts';
import { usageChanges } from './usage-model.ts';

const readAtOnce = 1_000;
const sweptAtOnce = 10_000;
const types = {
  payments: typesListing('readModels', 'payments'),
  credit: typesListing('readModels', 'credit'),
  usage: typesListing('readModels', 'usage'),
};
const creditTypes: ReadonlySet<string> = new Set(types.credit);

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
 * One event must not stop the read models; the next event of its stream is passed over too.
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
  const next = await readNext(pool, projection.seq, max, types);
  if (!next) return 0;
  const { last } = next;
  const events = next.leaves.map(decodeLeaf);
  const ofCredit = events.filter(({ type }) => creditTypes.has(type));
  const streams = await memory.complete(
    pool,
    events.filter(
      ({ type, stream }) => (!creditTypes.has(type) || isChat(stream)) && !isTriggeredStream(stream),
    ),
    last,
  );
  const [chats = [], quotes = []] = [true, false].map((wanted) =>
    streams.filter(([first]) => isChat(first?.stream ?? '') === wanted),
  );
  const rows = quotes.map(paymentRowsOf);
  const isOurs = await applyProjection(pool, projection, last, {
    payments: rows.flatMap(({ payments }) => payments),
    calls: rows.flatMap(({ calls, withdrawn }) => [...calls, ...withdrawn]),
    accounts: accountCreditOf(ofCredit),
    usage: usageChanges(chats, projection.seq),
    completions: completionRowsOf(chats),
  });
  return isOurs ? last - projection.seq : 0;
}

const isChat = (stream: string): boolean => stream.startsWith('chat:');

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
 * Builds a new generation of the read models from the first event and activates it when it has caught up. The old generation
 * is read until then. Returns the position up to which the new one was built.
 */
export async function rebuildProjections(
  pool: pg.Pool,
  max: number,
  onProgress: (seq: number) => void,
): Promise<number> {
  const generation = await beginProjection(pool);
  const memory = createStreamMemory();
  for (;;) {
    const read = await projectNext(pool, max, { generation, memory });
    const { seq } = await readProjection(pool, generation);
    onProgress(seq);
    // a full batch means that it still lags far
    const replaced = read < max ? await activateProjection(pool, generation) : undefined;
    if (replaced === undefined) continue;
    while ((await pruneProjections(pool, replaced, sweptAtOnce)) > 0);
    return seq;
  }
}

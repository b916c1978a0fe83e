import type pg from 'pg';
import { isUnreadable, typesListing } from '../domain/events/event.ts';
import { readCounters } from '../store/counters.ts';
import { isDataError, type LedgerDatabase } from '../store/database.ts';
import { applyCredit, readLastOf, readOfTypes } from '../store/credit-projection.ts';
import { noteUnreadable } from '../store/follow-ups.ts';
import {
  activateProjection,
  applyProjection,
  beginProjection,
  readProjection,
  readStreamsUpTo,
  readTouched,
  pruneProjections,
} from '../store/projection.ts';
import { accountCreditOf } from './credit-model.ts';
import { paymentRowsOf } from './read-model.ts';

const readAtOnce = 1_000;
const sweptAtOnce = 10_000;
const paymentTypes = typesListing('readModels', 'payments');
const creditTypes = typesListing('readModels', 'credit');

/**
 * Applies the next events to a generation of the read models, by default the active one. Returns the number of events
 * applied: 0 where there was none, or where another process has applied them (compare-and-swap on the position).
 */
export async function projectNext(pool: pg.Pool, max: number, generation?: number): Promise<number> {
  const ofPayments = await projectPayments(pool, max, generation);
  return Math.max(ofPayments, await projectCredit(pool, max, generation));
}

async function projectPayments(pool: pg.Pool, max: number, generation?: number): Promise<number> {
  const projection = await readProjection(pool, generation);
  const touched = await readTouched(pool, projection.seq, max, paymentTypes);
  if (!touched) return 0;
  const apply = async (): Promise<number> => {
    const streams = await readStreamsUpTo(pool, touched.streams, touched.last);
    const rows = streams.map(paymentRowsOf);
    const isOurs = await applyProjection(pool, projection, touched.last, {
      payments: rows.flatMap(({ payments }) => payments),
      calls: rows.flatMap(({ calls }) => calls),
    });
    return isOurs ? touched.last - projection.seq : 0;
  };
  return passUnreadable(pool, max, touched.last, {
    apply,
    retry: (fewer) => projectPayments(pool, fewer, generation),
    skip: () => applyProjection(pool, projection, touched.last, { payments: [], calls: [] }),
  });
}

/**
 * Applies some events. Where one of them cannot be read, fewer are tried, down to that event alone: it is passed over, and the
 * operator gets an alert. One event must not stop the read models; the next event of its stream is passed over too.
 */
async function passUnreadable(
  pool: pg.Pool,
  max: number,
  last: number,
  {
    apply,
    retry,
    skip,
  }: {
    readonly apply: () => Promise<number>;
    readonly retry: (fewer: number) => Promise<number>;
    readonly skip: () => Promise<boolean>;
  },
): Promise<number> {
  try {
    return await apply();
  } catch (error) {
    if (!isUnreadable(error) && !isDataError(error)) throw error;
    if (max > 1) return retry(max >> 1);
    await noteUnreadable(pool, last);
    return (await skip()) ? 1 : 0;
  }
}

/** Brings the read models up to the current end of the ledger. Other processes may do the same concurrently. */
export async function projectToHead(ledger: {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
}): Promise<void> {
  const { asOfSeq } = await readCounters(ledger.db);
  while ((await readProjection(ledger.pool)).seq < asOfSeq) await projectNext(ledger.pool, readAtOnce);
}

/** Credit has a position of its own: it is a sum over events, while payments are folds of whole streams. */
async function projectCredit(pool: pg.Pool, max: number, generation?: number): Promise<number> {
  const place = await readProjection(pool, generation, 'credit_seq');
  const last = await readLastOf(pool, place.seq, max);
  if (last === undefined) return 0;
  const apply = async (): Promise<number> => {
    const events = await readOfTypes(pool, place.seq, last, creditTypes);
    return (await applyCredit(pool, place, last, accountCreditOf(events))) ? last - place.seq : 0;
  };
  return passUnreadable(pool, max, last, {
    apply,
    retry: (fewer) => projectCredit(pool, fewer, generation),
    skip: () => applyCredit(pool, place, last, []),
  });
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
  for (;;) {
    const read = await projectNext(pool, max, generation);
    const { seq } = await readProjection(pool, generation);
    onProgress(seq);
    // a full batch means that it is still far behind
    const replaced = read < max ? await activateProjection(pool, generation) : undefined;
    if (replaced === undefined) continue;
    while ((await pruneProjections(pool, replaced, sweptAtOnce)) > 0);
    return seq;
  }
}

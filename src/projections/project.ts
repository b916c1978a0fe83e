import type pg from 'pg';
import { typesListing } from '../domain/events/event.ts';
import { readCounters } from '../store/counters.ts';
import type { LedgerDatabase } from '../store/database.ts';
import { applyCredit, readNextOfTypes } from '../store/credit-projection.ts';
import {
  activateProjection,
  applyProjection,
  beginProjection,
  readProjection,
  readStreamsUpTo,
  readTouched,
  sweepProjections,
} from '../store/projection.ts';
import { accountCreditOf } from './credit-model.ts';
import { paymentRowsOf } from './read-model.ts';

const readAtOnce = 1_000;
const sweptAtOnce = 10_000;
const paymentTypes = typesListing('readModels', 'payments');
const creditTypes = typesListing('readModels', 'credit');

/**
 * Takes the next events into a generation of the read models, the one that is read where none is named. Returns how many
 * events that were; 0 where there was none, or another process was first.
 */
export async function projectNext(pool: pg.Pool, max: number, generation?: number): Promise<number> {
  const ofPayments = await projectPayments(pool, max, generation);
  return Math.max(ofPayments, await projectCredit(pool, max, generation));
}

async function projectPayments(pool: pg.Pool, max: number, generation?: number): Promise<number> {
  const projection = await readProjection(pool, generation);
  const touched = await readTouched(pool, projection.seq, max, paymentTypes);
  if (!touched) return 0;
  const streams = await readStreamsUpTo(pool, touched.streams, touched.last);
  const rows = streams.map(paymentRowsOf);
  const isOurs = await applyProjection(pool, projection, touched.last, {
    payments: rows.flatMap(({ payments }) => payments),
    calls: rows.flatMap(({ calls }) => calls),
  });
  return isOurs ? touched.last - projection.seq : 0;
}

/** Brings the read models up to all that is recorded by now, whoever else does so at the same time. */
export async function projectToHead(ledger: {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
}): Promise<void> {
  const { asOfSeq } = await readCounters(ledger.db);
  while ((await readProjection(ledger.pool)).seq < asOfSeq) await projectNext(ledger.pool, readAtOnce);
}

/** Credit has a place of its own in the ledger: it is a sum over events, where payments are folds of whole streams. */
async function projectCredit(pool: pg.Pool, max: number, generation?: number): Promise<number> {
  const place = await readProjection(pool, generation, 'credit_seq');
  const next = await readNextOfTypes(pool, place.seq, max, creditTypes);
  if (!next) return 0;
  const isOurs = await applyCredit(pool, place, next.last, accountCreditOf(next.events));
  return isOurs ? next.last - place.seq : 0;
}

/**
 * Builds the read models anew from the first event, beside those that are read, and puts them in their place when they have
 * caught up. Nobody waits meanwhile. Returns how many events they were made of.
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
    // near its end only: until then it would be asked in vain
    const replaced = read < max ? await activateProjection(pool, generation) : undefined;
    if (replaced === undefined) continue;
    while ((await sweepProjections(pool, replaced, sweptAtOnce)) > 0);
    return seq;
  }
}

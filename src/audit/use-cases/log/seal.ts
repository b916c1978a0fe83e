import type pg from 'pg';
import { type NoteSigner, signCheckpoint } from '../../../base/values/log/checkpoint.ts';
import { signerIn } from '../../../base/values/log/log-generation.ts';
import { RightEdge } from '../../../base/values/log/merkle.ts';
import type { KnownHead } from './history.ts';
import { appendEvents } from './prove.ts';
import { extendLog, readLogGeneration, readLogTip } from '../../store/log.ts';

export interface SealOptions {
  /** A tree head is signed this long after the last one, if there are new events. */
  readonly everyMs: number;
  /** A head is signed immediately when this many events wait. It never adds more events. */
  readonly everyEvents: number;
}

/** `again`: more events wait than one head adds. */
export type Sealed = 'again' | 'done';

/**
 * Adds the next events to the tree and signs its head. Tree and head are committed together; publishers read the committed head.
 * Several sealers may run: compare-and-swap on the tree size; the loser does nothing.
 * @param first the signer of the log's first generation
 * @param known learns the new head; nothing is sealed if the database contradicts the last one
 */
export async function sealNext(
  pool: pg.Pool,
  first: NoteSigner,
  options: SealOptions,
  known?: KnownHead,
): Promise<Sealed> {
  const { generation, beganAtSeq } = await readLogGeneration(pool);
  const signer = signerIn(first, generation);
  const origin = signer.name;
  const tip = await readLogTip(pool, origin);
  const pending = tip.seq - tip.size;
  const { head } = tip;
  if (head && (head.size > tip.size || pending === 0)) return 'done';
  if (head && head.ageMs < options.everyMs && pending < options.everyEvents) return 'done';
  // the history checker halts the ledger for it; until then nothing is signed
  if (await known?.check(pool)) return 'done';
  // every head of a later generation covers the event that says why there is one
  const count = Math.max(Math.min(pending, options.everyEvents), beganAtSeq - tip.size);

  const edge = RightEdge.from(tip.size, tip.edge);
  await appendEvents(pool, edge, tip.size + count);
  const root = edge.root();
  const note = signCheckpoint({ origin, size: edge.size, root }, signer);
  const isOurs = await extendLog(pool, {
    origin,
    generation,
    from: tip.size,
    size: edge.size,
    root,
    note,
  });
  if (isOurs) await known?.learn(pool, { origin, size: edge.size, root });
  return isOurs && pending > count ? 'again' : 'done';
}

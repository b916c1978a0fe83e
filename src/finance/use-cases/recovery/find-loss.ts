import type pg from 'pg';
import type { TreeHead } from '../../../base/values/log/checkpoint.ts';
import type { AnchorComparison } from '../../../audit/use-cases/log/anchors.ts';
import { readExportEnd } from '../../../ledger/store/export.ts';
import { type RecordedHalt, readTimeOf } from '../../../ledger/store/recovery.ts';

/** What the anchors and a recorded halt say about the events that the ledger lost. */
export interface Loss {
  /** A machine-readable code. */
  readonly reason: string;
  /** The last event of the database. */
  readonly keptSeq: number;
  /** The largest checkpoint of the lost history. */
  readonly anchored: TreeHead | undefined;
  /** Undefined if nothing tells at which event the histories part. */
  readonly lostFrom: number | undefined;
  readonly lostTo: number | undefined;
  /** Unix seconds: the time of the last event that is certainly kept; undefined if that is unknown. */
  readonly sinceSecs: number | undefined;
}

/** Undefined if the ledger is whole, as far as the anchors and the halt tell. */
export async function findLoss(
  pool: pg.Pool,
  compared: readonly AnchorComparison[],
  halt: RecordedHalt | undefined,
): Promise<Loss | undefined> {
  const differing = compared.filter(({ kind }) => kind === 'ahead' || kind === 'other_history');
  const heads = differing.flatMap((one) => ('head' in one ? one.head : []));
  // there are other events in the place of lost ones, so the last one does not tell where the loss began
  const isOvergrown =
    halt !== undefined && (halt.foundSeq === undefined || (halt.knownSeq ?? 0) <= halt.foundSeq);
  const isParted = isOvergrown || differing.some(({ kind }) => kind === 'other_history');
  if (heads.length === 0 && !halt) return undefined;
  const anchored = heads.toSorted((a, b) => b.size - a.size)[0];
  const { last: keptSeq } = await readExportEnd(pool);
  const lostFrom = isParted ? undefined : Math.min(keptSeq, halt?.foundSeq ?? keptSeq) + 1;
  const lostTo = Math.max(anchored?.size ?? 0, halt?.knownSeq ?? 0);
  return {
    reason: halt ? 'went_back' : isParted ? 'anchor_differs' : 'anchor_ahead',
    keptSeq,
    anchored,
    lostFrom,
    lostTo: lostTo >= (lostFrom ?? 0) && lostTo > 0 ? lostTo : undefined,
    sinceSecs: lostFrom === undefined ? undefined : await readTimeOf(pool, lostFrom - 1),
  };
}

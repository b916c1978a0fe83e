import type pg from 'pg';
import type { NoteSigner } from '../../base/values/log/checkpoint.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { findInconsistency } from '../use-cases/log/anchors.ts';
import type { KnownHead } from '../use-cases/log/known-head.ts';
import type { Anchor } from '../peers/anchors/anchor.ts';
import type { Lane } from '../../ledger/store/lane.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 1_000;
const knownEveryMs = 5_000;
const anchorsEveryMs = 60_000;

/**
 * Compares the database with the knowledge of this process and the anchors: immediately after the database could not be reached,
 * since it may be another one then, and from time to time. Halts the ledger where they differ.
 */
export function startHistoryChecker(
  { pool, lane, log }: { readonly pool: pg.Pool; readonly lane: Lane; readonly log: OperatorLog },
  first: NoteSigner,
  known: KnownHead,
  anchors: readonly Anchor[],
): Loop {
  let checkedMs = performance.now();
  let anchorsCheckedMs = checkedMs;
  let interruptions = 0;
  return startLoop(
    async () => {
      const { state } = lane;
      const nowMs = performance.now();
      const isOther = state.interruptions !== interruptions;
      if (state.halt || (!isOther && nowMs - checkedMs < knownEveryMs)) return;
      const withAnchors = isOther || nowMs - anchorsCheckedMs >= anchorsEveryMs;
      // also notices a lost append while nothing is appended
      void lane.refresh();
      const found = await findInconsistency(pool, first, known, withAnchors ? anchors : []);
      if (found) lane.halt(found);
      ({ interruptions } = state);
      checkedMs = nowMs;
      if (withAnchors) anchorsCheckedMs = nowMs;
    },
    { pollMs, log, failureMessage: 'the database could not be compared with the checkpoints' },
  );
}

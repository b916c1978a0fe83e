import type pg from 'pg';
import type { NoteSigner } from '../../base/values/log/checkpoint.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { currentSigner } from '../use-cases/log/anchors.ts';
import type { Backlog } from '../../ledger/store/backlogs.ts';
import { readUnsealed } from '../store/log.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 5_000;

/** Reads how many events the newest checkpoint lacks. Any process may be the one that seals. */
export function startSealerWatch(
  { pool, log }: { readonly pool: pg.Pool; readonly log: OperatorLog },
  first: NoteSigner,
  onUnsealed: (unsealed: Backlog) => void,
): Loop {
  return startLoop(
    async () => {
      const { name: origin } = await currentSigner(pool, first);
      onUnsealed(await readUnsealed(pool, origin));
    },
    { pollMs, log, failureMessage: 'how far the log is could not be read' },
  );
}

import type pg from 'pg';
import type { KnownHead } from '../use-cases/log/known-head.ts';
import { sealNext, type SealOptions } from '../use-cases/log/seal.ts';
import type { NoteSigner } from '../../base/values/log/checkpoint.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

/** Seals new events. `onSealed` runs after each step, when the new tree head is committed and may be published. */
export function startSealer(
  { pool, log }: { readonly pool: pg.Pool; readonly log: OperatorLog },
  signer: NoteSigner,
  options: SealOptions,
  known: KnownHead,
  onSealed: () => Promise<void>,
): Loop {
  // twice per interval: several processes share the work, so no head is late where one of them is slow
  const pollMs = Math.max(10, Math.floor(options.everyMs / 2));
  return startLoop(
    async () => {
      const sealed = await sealNext(pool, signer, options, known);
      await onSealed();
      return sealed === 'again';
    },
    { pollMs, log, failureMessage: 'the ledger could not be sealed' },
  );
}

import type pg from 'pg';
import { sealNext, type SealOptions } from '../log/seal.ts';
import type { NoteSigner } from '../domain/log/checkpoint.ts';
import type { OperatorLog } from '../domain/values/operator-log.ts';
import { type Loop, startLoop } from './loop.ts';

/** Seals the ledger as it grows. `onSealed` runs after each round: what is committed may be published. */
export function startSealer(
  { pool, log }: { readonly pool: pg.Pool; readonly log: OperatorLog },
  signer: NoteSigner,
  options: SealOptions,
  onSealed: () => Promise<void>,
): Loop {
  // several processes share the work: each looks a little earlier than its turn may come
  const pollMs = Math.max(10, Math.floor(options.everyMs / 2));
  return startLoop(
    async () => {
      const sealed = await sealNext(pool, signer, options);
      await onSealed();
      return sealed === 'again';
    },
    { pollMs, log, failureMessage: 'the ledger could not be sealed' },
  );
}

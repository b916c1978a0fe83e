import { removeUnusedUploads } from '../use-cases/large-result.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 600_000;

/** Deletes the parts of large results whose life has ended, and of those that were never completed. */
export function startResultSweeper(context: Parameters<typeof removeUnusedUploads>[0]): Loop {
  return startLoop(() => removeUnusedUploads(context), {
    pollMs,
    log: context.log,
    failureMessage: 'large results could not be deleted from the result store',
  });
}

import { pause } from '../base/runtime/pause.ts';

/** What became of one attempt to extend a lease. */
export type Extension =
  | { readonly kind: 'held'; readonly lastsMs: number }
  /** No answer that says it: the lease may still be valid, and only the gateway decides that it is lost. */
  | { readonly kind: 'again' }
  | { readonly kind: 'lost'; readonly reason: string };

export interface LeaseToKeep {
  /** How long it lasts now. */
  readonly firstMs: number;
  extend(timeoutMs: number): Promise<Extension>;
  onLost(reason: string): void;
}

const longestRetryMs = 5_000;

/** Extends a lease well before it ends, again and again, until `done` or it is lost. */
export async function keepLease({ firstMs, extend, onLost }: LeaseToKeep, done: AbortSignal): Promise<void> {
  let lastsMs = firstMs;
  let waitMs = lastsMs / 3;
  while (await pause(waitMs, done)) {
    const extension = await extend(Math.max(1_000, lastsMs / 3));
    // the outcome may have been reported meanwhile: then the lease has ended because the call is done
    if (done.aborted) return;
    if (extension.kind === 'lost') return onLost(extension.reason);
    if (extension.kind === 'held') lastsMs = extension.lastsMs;
    waitMs = extension.kind === 'held' ? lastsMs / 3 : Math.min(lastsMs / 6, longestRetryMs);
  }
}

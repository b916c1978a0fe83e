import type { FastifyInstance } from 'fastify';
import { clientOf } from '../values/client-address.ts';
import { createRotation } from '../values/rotation.ts';
import { addressOf } from './request-values.ts';

/** How long one round of the event loop begins new requests before the rest of them waits. */
const roundMs = 8;
/** How many waiting requests one round begins at most. */
const mostOfRound = 256;

/**
 * While the main thread cannot keep up, new requests wait after their head was read, and each client address is served in turn: a client that
 * sends many requests delays its own, not those of others. A request that has begun is not delayed.
 * @param isExempt whether requests for this URL never wait
 */
export function admitInTurn(app: FastifyInstance, isExempt: (url: string) => boolean): void {
  const waiting = createRotation<() => void>();
  let isScheduled = false;
  /** Until then requests of this round of the event loop need not wait. */
  let roundEndsMs: number | undefined;

  const hasTime = (): boolean => {
    const nowMs = performance.now();
    if (roundEndsMs === undefined) {
      roundEndsMs = nowMs + roundMs;
      setImmediate(() => (roundEndsMs = undefined));
    }
    return nowMs < roundEndsMs;
  };
  /** Each request begins in its own immediate, so that the time of one is known when the next may begin; the first always does. */
  const schedule = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    let endsMs: number | undefined;
    const count = Math.min(waiting.size, mostOfRound);
    for (let left = count - 1; left >= 0; left--)
      setImmediate(() => {
        const nowMs = performance.now();
        endsMs ??= nowMs + roundMs;
        if (nowMs < endsMs) waiting.next()?.();
        if (left > 0) return;
        isScheduled = false;
        if (waiting.size > 0) schedule();
      });
  };

  app.addHook('onRequest', (request, reply, done) => {
    if (isExempt(request.url) || (waiting.size === 0 && hasTime())) return done();
    const client = clientOf(addressOf(request));
    const begin = (): void => done();
    waiting.add(client, begin);
    // a client that has left takes no turn
    reply.raw.once('close', () => waiting.remove(client, begin));
    schedule();
  });
}

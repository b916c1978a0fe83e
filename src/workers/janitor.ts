import type { Gateway } from '../gateway/gateway.ts';
import { sweep } from '../store/calls.ts';
import { sweepFollowUps } from '../store/follow-ups.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 600_000;
const piece = 500;

/** Drops what no call can need again. */
export function startJanitor(gateway: Gateway): Loop {
  return startLoop(
    async () => (await sweep(gateway.pool, piece)) + (await sweepFollowUps(gateway.pool, piece)) > 0,
    pollMs,
    (error) => gateway.log.error({ err: error }, 'the janitor could not sweep'),
  );
}

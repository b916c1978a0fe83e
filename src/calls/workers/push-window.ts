import { busyPauseMs } from '../use-cases/record-attempt.ts';
import type { PushAnswer } from '../peers/runner/push-runner.ts';

/** For so long the number of calls that a busy runner had is taken as all that it has room for. */
const fullMs = 10_000;

export type PushWindow = ReturnType<typeof createPushWindow>;

/**
 * How many calls a runner gets simultaneously. A busy runner gets no more calls for the pause that it asks for, or for one that grows. Then it gets as many calls simultaneously as it had, and one
 * more is tried every ten seconds. A runner that had no calls, because it is stopping or overloaded, gets one, and one more for each that it
 * takes.
 * @param most the configured number
 * @param nowMs a monotonic clock
 */
export function createPushWindow(most: number, nowMs: () => number = () => performance.now()) {
  let running = 0;
  let limit = most;
  /** Busy answers in a row. */
  let refusals = 0;
  let pausedUntilMs = -Infinity;
  let full = { calls: most, untilMs: -Infinity };
  return {
    /** How many more calls may be pushed now. */
    room: (): number => (nowMs() < pausedUntilMs ? 0 : Math.max(0, limit - running)),
    began(): void {
      running += 1;
    },
    ended(answer: PushAnswer): void {
      running -= 1;
      if (answer.kind === 'busy') {
        // several that were refused together are one refusal
        if (nowMs() >= pausedUntilMs) {
          pausedUntilMs = nowMs() + busyPauseMs(answer, refusals, Math.random());
          refusals += 1;
        }
        limit = Math.max(1, running);
        full = { calls: running, untilMs: running > 0 ? nowMs() + fullMs : -Infinity };
      } else {
        refusals = 0;
        const ceiling = nowMs() < full.untilMs ? full.calls : most;
        limit = Math.max(limit, Math.min(limit + 1, ceiling));
      }
    },
  };
}

import { type BackOff, backOffMs } from '../values/back-off.ts';
import { pause } from './pause.ts';

export interface PollOptions<T> {
  /** Whether this answer ends the polling. */
  readonly until: (answer: T) => boolean;
  readonly timeoutMs: number;
  /** The waits between two questions. */
  readonly pauses: BackOff;
}

/** Asks again until an answer is final, or until the next pause would outlast the time limit: then the last answer counts. */
export async function poll<T>(
  ask: (remainingMs: number) => Promise<T>,
  { until, timeoutMs, pauses }: PollOptions<T>,
): Promise<T> {
  const endMs = performance.now() + timeoutMs;
  for (let repeats = 0; ; repeats += 1) {
    const answer = await ask(Math.max(endMs - performance.now(), 1));
    const pauseMs = backOffMs(pauses, repeats);
    if (until(answer) || performance.now() + pauseMs >= endMs) return answer;
    await pause(pauseMs);
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import { slowness } from './processor.ts';

/** What one request may take of the main thread's processor time in one piece: 50 ms on a processor of usual speed. */
export const maxPieceMs = 50 * slowness;

/** The processor time that this thread takes for work without pauses, in milliseconds: the least of three times, after a first one that compiles it. */
export function cpuMs(work: () => unknown): number {
  work();
  const times = [1, 2, 3].map(() => {
    const before = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...times);
}

/** The most that this thread takes in one piece, between two turns of its event loop, while something is under way: the least of two times. */
export async function longestPieceMs(underWay: () => Promise<unknown>): Promise<number> {
  const longest = [];
  for (let time = 0; time < 2; time++) {
    let most = 0;
    let last = process.threadCpuUsage();
    const look = (): void => {
      const { user, system } = process.threadCpuUsage(last);
      last = process.threadCpuUsage();
      most = Math.max(most, (user + system) / 1_000);
    };
    const timer = setInterval(look, 1);
    await underWay();
    await sleep(5);
    clearInterval(timer);
    longest.push(most);
  }
  return Math.min(...longest);
}

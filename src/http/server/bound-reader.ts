import type { ServerResponse } from 'node:http';

export interface ReaderBounds {
  readonly stalledMs: number;
  readonly longestMs: number;
}

const defaults: ReaderBounds = { stalledMs: 60_000, longestMs: 900_000 };

/**
 * Cuts off a client that takes nothing of a long answer for `stalledMs`, or does not have all of it after `longestMs`: it must not keep a
 * place that others wait for.
 */
export function boundReader(
  response: ServerResponse,
  { stalledMs, longestMs }: ReaderBounds = defaults,
): void {
  const leave = (): void => void response.destroy();
  response.setTimeout(stalledMs, leave);
  const timer = setTimeout(leave, longestMs);
  response.once('close', () => clearTimeout(timer));
}

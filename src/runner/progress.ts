import type { LeaseAnswer, PostOptions } from './lease-client.ts';

/** What a handler says of its call while it works: for the client that waits. */
export interface Progress {
  /** From 0 to 1. */
  readonly fraction?: number | undefined;
  /** Up to 200 characters. */
  readonly message?: string | undefined;
}

export type ReportProgress = (progress: Progress) => void;

const everyMs = 1_000;
const timeoutMs = 5_000;
const messageLength = 200;

/**
 * Sends reported values, only the last and once a second at most, until `ended`. Nothing depends on it: a value that cannot be sent is
 * dropped.
 */
export function createReporter(
  send: (body: Progress, options: PostOptions) => Promise<LeaseAnswer>,
  ended: AbortSignal,
): ReportProgress {
  let next: Progress | undefined;
  let isBusy = false;
  const sendNext = async (): Promise<void> => {
    const body = next;
    if (body === undefined || ended.aborted) {
      isBusy = false;
      return;
    }
    next = undefined;
    await send(body, { signal: ended, timeoutMs });
    setTimeout(() => void sendNext(), everyMs).unref();
  };
  return (progress) => {
    next = clean(progress);
    if (isBusy || ended.aborted) return;
    isBusy = true;
    void sendNext();
  };
}

/** Progress must not make a paid call fail: a value out of range becomes the nearest one in range. */
function clean(progress: Progress | null | undefined): Progress {
  const { fraction, message } = progress ?? {};
  const isNumber = typeof fraction === 'number' && !Number.isNaN(fraction);
  return {
    ...(isNumber ? { fraction: Math.min(1, Math.max(0, fraction)) } : {}),
    ...(typeof message === 'string' ? { message: printable(message) } : {}),
  };
}

function printable(message: string): string {
  return message
    .replaceAll(/\p{Cc}/gu, ' ')
    .slice(0, messageLength)
    .toWellFormed();
}

import { isFinal } from '../../payments/rules/quote-state.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { SharedReads } from '../../base/runtime/shared-reads.ts';
import type { StreamWatch } from '../../calls/use-cases/stream-watch.ts';
import { readReceipt, type ReceiptReader, type ReceiptReading } from './receipt.ts';

export interface FollowPorts extends ReceiptReader {
  readonly streams: StreamWatch;
  readonly stopping: () => boolean;
}

/** The longest that anyone waits for a change of a receipt. */
export const maxWaitSecs = 60;

export interface Following {
  readonly digest: Hex;
  readonly withResult: boolean;
  /** How long to wait for the end; 0 gives the present receipt. */
  readonly waitSecs: number;
  /** Also after each change of the progress, for a client that may see the result. */
  readonly withProgress?: boolean;
  /** The client has left. */
  readonly signal: AbortSignal;
  /** Those who wait for the same receipt and are woken together read it once. */
  readonly reads: ReceiptReads;
}

export type ReceiptReads = SharedReads<ReceiptReading | undefined>;

/**
 * A quote's present receipt, and again after each change: until it is final, the time is over, the client has left or the process
 * shuts down. Nothing for an unknown digest.
 */
export async function* followReceipt(
  context: FollowPorts,
  { digest, withResult, waitSecs, withProgress = false, signal, reads }: Following,
): AsyncGenerator<ReceiptReading> {
  const over = AbortSignal.any([signal, AbortSignal.timeout(waitSecs * 1_000)]);
  let seen = 0;
  let progressMs = 0;
  for (;;) {
    const read = (): Promise<ReceiptReading | undefined> => readReceipt(context, digest, withResult);
    const inTurn = (): Promise<ReceiptReading | undefined> => context.streams.turns.take(read);
    // a read that began before the event has an older receipt: then the wait continues, and ends at the next look
    const reading = seen === 0 ? await read() : await reads.read(`${digest}/${withResult}`, inTurn);
    if (!reading) return;
    const { call_id: callId, progress } = reading.receipt;
    const atMs = withProgress && progress ? Date.parse(progress.at) : progressMs;
    if (reading.version > seen || atMs > progressMs) yield reading;
    seen = reading.version;
    progressMs = atMs;
    if (isFinal(reading.receipt.state) || over.aborted || context.stopping()) return;
    const followed = withProgress && withResult && callId !== undefined ? { callId, atMs } : undefined;
    await context.streams.grown({ stream: digest, version: seen, progress: followed }, over);
  }
}

/** The receipt once it is final, or at the end of the wait; undefined for an unknown digest. */
export async function awaitReceipt(
  context: FollowPorts,
  following: Following,
): Promise<ReceiptReading | undefined> {
  let last: ReceiptReading | undefined;
  for await (const reading of followReceipt(context, following)) last = reading;
  return last;
}

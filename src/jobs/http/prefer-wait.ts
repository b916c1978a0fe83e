import type { FastifyReply, FastifyRequest } from 'fastify';
import { awaitReceipt, maxWaitSecs } from '../use-cases/follow-receipt.ts';
import type { JobsContext } from '../use-cases/context.ts';
import type { ReceiptReading } from '../use-cases/receipt.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { createSharedReads } from '../../base/runtime/shared-reads.ts';
import { leftSignal } from '../../base/http/left-signal.ts';
import { addressOf } from '../../base/http/request-values.ts';
import type { WaitPlaces } from '../../base/http/wait-places.ts';

/** What a request's `Prefer: wait` led to. */
export interface PreferredWait {
  /** How long the gateway would have waited, in seconds. */
  readonly waitSecs: number;
  /** The receipt with the result; undefined where the call was not completed in time. */
  readonly completed: ReceiptReading['receipt'] | undefined;
}

/**
 * Waits for the result of a paid call as long as its client prefers (RFC 7240), which the client must have shown to be its own.
 * Undefined where it prefers nothing, or where no place to wait is free: a paid request is never refused for that.
 */
export async function waitAsPreferred(
  context: JobsContext,
  request: FastifyRequest,
  reply: FastifyReply,
  digest: Hex,
  places: WaitPlaces,
): Promise<PreferredWait | undefined> {
  const waitSecs = preferredWaitSecs(request.headers['prefer']);
  const leave = waitSecs > 0 ? places.take(addressOf(request)) : undefined;
  if (!leave) return undefined;
  try {
    const reading = await awaitReceipt(context, {
      digest,
      withResult: true,
      waitSecs,
      signal: leftSignal(reply),
      reads: createSharedReads(),
    });
    const completed = reading?.receipt.state === 'completed' ? reading.receipt : undefined;
    return { waitSecs, completed };
  } finally {
    leave();
  }
}

/** The seconds of `Prefer: wait=N`, at most {@link maxWaitSecs}; 0 where there are none. A preference that is malformed is none. */
function preferredWaitSecs(header: string | readonly string[] | undefined): number {
  const preferences = [header ?? []].flat().join(',').split(',');
  const named = preferences.map(
    (preference) => /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?$/i.exec(preference)?.[1],
  );
  const [first = '0'] = named.filter((secs) => secs !== undefined);
  return Math.min(Number(first), maxWaitSecs);
}

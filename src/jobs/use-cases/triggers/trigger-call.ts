import type { EventData } from '../../../ledger/rules/event.ts';
import type { JobId } from '../../../base/values/job.ts';
import { sha256 } from '../../../base/values/sha256.ts';
import { firingKey } from '../../../base/values/triggers/trigger.ts';
import { type Firing, triggeredStream } from '../../../base/values/triggers/trigger.ts';
import type { LoggedPorts } from '../../../calls/use-cases/record-attempt.ts';
import type { QuoteRealm } from '../../../payments/rules/quote-echo.ts';
import type { Tracing } from '../../../base/values/tracing.ts';
import { append, keepRequest } from '../start-payment.ts';
import { nextCallId } from '../../../calls/store/calls.ts';
import { findClaim, firingClaim, readStream } from '../../../ledger/store/streams.ts';

/** What a trigger needs of a gateway. */
export interface TriggerContext extends LoggedPorts {
  readonly quoteRealm: Pick<QuoteRealm, 'ledgerId'>;
  readonly tooLate: () => boolean;
  readonly tracing?: Tracing | undefined;
}

/** One firing of a trigger, with the call that it is to make. */
export interface TriggerOrder extends Firing {
  readonly job: JobId;
  readonly body: Buffer;
  readonly contentType: string | undefined;
  /** Of a chain trigger alone: where the log is. */
  readonly log?: EventData<'call_triggered'>['log'];
}

export interface MadeCall {
  readonly callId: number;
  readonly idempotencyKey: string;
}

export type TriggerResult =
  | (MadeCall & { readonly kind: 'triggered' })
  /** The same firing has made this call before, in any process. */
  | (MadeCall & { readonly kind: 'repeated' })
  /** A firing of this id has made a call with another body. Nothing is recorded. */
  | { readonly kind: 'conflict' }
  /** Nothing is recorded: the same firing can be tried again later. */
  | { readonly kind: 'busy'; readonly reason: 'stopping' | 'outbox_full' | 'lane_full' };

/**
 * Makes the call of one firing, in one append: its event, the claim of the firing's id and the call in the outbox, ready for a runner. The
 * claim decides between processes, so a firing makes one call for ever, however often it is repeated. Nothing is charged.
 */
export async function triggerCall(context: TriggerContext, order: TriggerOrder): Promise<TriggerResult> {
  const bodySha256 = sha256(order.body);
  const before = await findMadeCall(context, order, bodySha256);
  if (before) return before;
  if (context.tooLate()) return { kind: 'busy', reason: 'stopping' };
  if (context.lane.state.triggeredCalls >= context.config.limits.maxOutstandingCalls)
    return { kind: 'busy', reason: 'outbox_full' };
  return record(context, order, bodySha256);
}

async function record(
  context: TriggerContext,
  order: TriggerOrder,
  bodySha256: string,
): Promise<TriggerResult> {
  const { kind, name, id, job, body, log } = order;
  const firing = { kind, name, id };
  const { ledgerId } = context.quoteRealm;
  const idempotencyKey = firingKey(ledgerId, firing, bodySha256);
  const kept = await keepRequest(context, order);
  const callId = await nextCallId(context.pool);
  const data: EventData<'call_triggered'> = {
    call_id: callId,
    trigger: kind,
    trigger_name: name,
    trigger_id: id,
    service_id: job.serviceId,
    job_index: job.jobIndex,
    ledger_id: ledgerId,
    idempotency_key: idempotencyKey,
    body_sha256: bodySha256,
    body_bytes: body.length,
    ...(log === undefined ? {} : { log }),
  };
  const recorded = await append(context, {
    stream: triggeredStream(idempotencyKey),
    events: [{ type: 'call_triggered', data }],
    claims: [firingClaim(firing, bodySha256)],
    call: { op: 'enqueue', newCallId: callId, ...job, ...kept, idempotencyKey, trigger: firing },
  });
  switch (recorded.outcome) {
    case 'ok':
      context.onCallReleased();
      context.log.info(
        { trigger: name, trigger_kind: kind, trigger_id: id, call_id: callId },
        'call triggered',
      );
      return { kind: 'triggered', callId, idempotencyKey };
    case 'full':
      return { kind: 'busy', reason: 'lane_full' };
    case 'same':
    case 'lost': {
      const made = await findMadeCall(context, order, bodySha256);
      if (made) return made;
      throw new Error(`the claim of trigger ${name} is taken, but its call is not on record`);
    }
    case 'stale':
    case 'request_refused':
    case 'lease_lost':
      throw new Error(`the append of a triggered call was answered with ${recorded.outcome}`);
  }
}

/** The call that a firing has made before. */
async function findMadeCall(
  { pool }: TriggerContext,
  { kind, name, id }: Firing,
  bodySha256: string,
): Promise<Extract<TriggerResult, { kind: 'repeated' | 'conflict' }> | undefined> {
  const stream = await findClaim(pool, firingClaim({ kind, name, id }, ''));
  if (stream === undefined) return undefined;
  const [made] = (await readStream(pool, stream)).events;
  if (made?.type !== 'call_triggered') return undefined;
  const { call_id: callId, idempotency_key: idempotencyKey, body_sha256: before } = made.data;
  return before === bodySha256 ? { kind: 'repeated', callId, idempotencyKey } : { kind: 'conflict' };
}

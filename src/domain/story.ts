import type { EventData, RecordedEvent, SignedPaymentData } from './event.ts';

/** One payment within a stream. A second one can only follow where the first failed before broadcast. */
export interface PaymentStory {
  readonly binding: string;
  readonly bodySha256: string;
  readonly payment: SignedPaymentData;
  readonly startedAt: string;
  readonly status: 'settling' | 'settlement_unknown' | 'settlement_failed' | 'settled';
  /** Why it failed or is unknown: a machine word. */
  readonly reason?: string;
  readonly settled?: EventData<'payment_settled'>;
}

export interface CallStory {
  readonly callId: number;
  readonly status: 'enqueued' | 'delivered' | 'completed' | 'dead_lettered';
  /** The attempt that completed it: its result is stored under this number. */
  readonly attempt?: number;
}

/** All that a stream tells about its quote: a fold over its events and nothing else. */
export interface Story {
  readonly version: number;
  readonly quote?: EventData<'quote_issued'>;
  /** In the order they were started. */
  readonly payments: readonly PaymentStory[];
  readonly call?: CallStory;
  /** A caller was refused and no payment was started since. */
  readonly refused: boolean;
}

export const emptyStory: Story = { version: 0, payments: [], refused: false };

export function foldStory(events: Iterable<RecordedEvent>): Story {
  let story = emptyStory;
  for (const event of events) story = evolve(story, event);
  return story;
}

/** The story after one more event. Pure; events that say nothing about the stream's state only move its version. */
export function evolve(story: Story, event: RecordedEvent): Story {
  const next = { ...story, version: event.version };
  switch (event.type) {
    case 'quote_issued':
      return { ...next, quote: event.data };
    case 'auth_denied':
      return { ...next, refused: true };
    case 'settlement_started':
      return {
        ...next,
        refused: false,
        payments: [
          ...story.payments,
          {
            binding: event.data.binding,
            bodySha256: event.data.body_sha256,
            payment: event.data.payment,
            startedAt: event.at,
            status: 'settling',
          },
        ],
      };
    case 'settlement_unknown':
      return withPayment(next, event.data, { status: 'settlement_unknown', reason: event.data.reason });
    case 'settlement_failed':
      return withPayment(next, event.data, { status: 'settlement_failed', reason: event.data.reason });
    case 'payment_settled':
      return withPayment(next, event.data, { status: 'settled', settled: event.data });
    case 'enqueued':
      return { ...next, call: { callId: event.data.call_id, status: 'enqueued' } };
    case 'operator_requeued':
      return { ...next, call: { callId: event.data.call_id, status: 'enqueued' } };
    case 'delivered':
      return { ...next, call: { callId: event.data.call_id, status: 'delivered' } };
    case 'completed':
      return {
        ...next,
        call: { callId: event.data.call_id, status: 'completed', attempt: event.data.attempt },
      };
    case 'dead_lettered':
      return { ...next, call: { callId: event.data.call_id, status: 'dead_lettered' } };
    case 'auth_passed':
    case 'dry_run_allowed':
    case 'dry_run_denied':
    case 'dry_run_error':
    case 'payer_mismatch':
    case 'delivery_failed':
    case 'enqueue_failed':
    case 'operator_config_loaded':
    case 'operator_config_refused':
    case 'operator_runner_paused':
    case 'operator_runner_resumed':
    case 'operator_token_created':
    case 'operator_token_revoked':
    case 'payment_rejected':
    case 'payment_verified':
    case 'replay_denied':
    case 'request_refused':
      return next;
  }
}

function withPayment(
  story: Story,
  of: Pick<EventData<'settlement_failed'>, 'network' | 'asset' | 'payer' | 'payment_nonce'>,
  change: Partial<PaymentStory>,
): Story {
  return {
    ...story,
    payments: story.payments.map((payment) =>
      isNamed(payment, { ...of, nonce: of.payment_nonce }) ? { ...payment, ...change } : payment,
    ),
  };
}

export type ReceiptState =
  | 'quoted'
  | 'authorized'
  | 'settling'
  | 'settlement_unknown'
  | 'settlement_failed'
  | 'settled'
  | 'enqueued'
  | 'delivered'
  | 'completed'
  | 'dead_lettered'
  | 'refused'
  | 'expired'
  | 'refunded';

/** The one word for where a stream stands. `nowSecs` is the database's clock: only expiry needs it. */
export function receiptState(story: Story, nowSecs: number): ReceiptState {
  if (story.call) return story.call.status;
  const last = story.payments.at(-1);
  if (last && last.status !== 'settlement_failed') return last.status;
  if (story.refused) return 'refused';
  if (last) return 'settlement_failed';
  return story.quote && story.quote.expires_at <= nowSecs ? 'expired' : 'quoted';
}

/** Whether money moved: null while nobody can know. */
export function isPaid(story: Story): boolean | null {
  if (story.payments.some((payment) => payment.status === 'settled')) return true;
  return story.payments.some((payment) => payment.status !== 'settlement_failed') ? null : false;
}

/** Whether another payment may still take this stream's quote. */
export function isOpen(story: Story, nowSecs: number): boolean {
  return (
    story.quote !== undefined &&
    story.quote.expires_at > nowSecs &&
    story.payments.every((payment) => payment.status === 'settlement_failed')
  );
}

/** A payment by its name; the asset may be open. Plain text, since events are read back as text. */
interface NamedPayment {
  readonly network: string;
  readonly asset: string | undefined;
  readonly payer: string;
  readonly nonce: string;
}

/** The payment of that name within a stream; where the name leaves the asset open, the last one that fits. */
export function paymentOf(story: Story, name: NamedPayment): PaymentStory | undefined {
  return story.payments.findLast((payment) => isNamed(payment, name));
}

function isNamed({ payment }: PaymentStory, { network, asset, payer, nonce }: NamedPayment): boolean {
  const isOfAsset = asset === undefined || payment.asset === asset;
  return isOfAsset && payment.network === network && payment.payer === payer && payment.nonce === nonce;
}

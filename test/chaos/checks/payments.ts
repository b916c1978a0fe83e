import type { EventData, RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { sha256 } from '../../../src/base/values/sha256.ts';
import { bindingHash } from '../../../src/payments/rules/payment.ts';
import { paymentKey, type Presentation } from '../records.ts';
import { isOfRoute } from '../schedule.ts';

/** One payment's events, read without the product's own fold, so that the check is independent of it. */
export interface RecordedPayment {
  readonly key: string;
  readonly stream: string;
  readonly nonce: string;
  /** Of the request that it pays for. */
  readonly bodySha256: string;
  /** The hash of its method and path as well. */
  readonly binding: string;
  /** The event that began it: its start, or its payer's request for delivery if it landed without one. */
  readonly startedSeq: number;
  readonly settled: Extract<RecordedEvent, { type: 'payment_settled' | 'settlement_confirmed' }>[];
  /** Calls that were enqueued for it and not taken back. */
  readonly calls: number[];
  /** Those that were taken back as well. */
  readonly everEnqueued: number[];
  /** The ledger says that a reorg removed its transfer, and that no other came. */
  isReorgedOut: boolean;
  readonly callerNonce: string | undefined;
  /** With its payer. */
  readonly paymentId: string | undefined;
}

type Named = Pick<EventData<'settlement_failed'>, 'asset' | 'payer' | 'payment_nonce'>;

export function keyOf({ asset, payer, payment_nonce }: Named): string {
  return paymentKey(asset, payer, payment_nonce);
}

/** Every payment that was ever started, by its key. */
export function recordedPayments(events: readonly RecordedEvent[]): Map<string, RecordedPayment> {
  const payments = new Map<string, RecordedPayment>();
  const callerNonces = new Map<string, string>();
  for (const event of events) {
    switch (event.type) {
      case 'auth_passed': {
        const { caller, caller_nonce_sha256: nonce } = event.data;
        if (nonce) callerNonces.set(event.stream, `${caller}/${nonce}`);
        else callerNonces.delete(event.stream);
        break;
      }
      case 'settlement_started': {
        const { asset, payer, nonce } = event.data.payment;
        const { payment_id: id } = event.data;
        payments.set(paymentKey(asset, payer, nonce), {
          ...begun(event, { asset, payer, payment_nonce: nonce }),
          callerNonce: callerNonces.get(event.stream),
          paymentId: id === undefined ? undefined : `${payer}/${id}`,
        });
        break;
      }
      case 'redelivery_requested':
        payments.set(keyOf(event.data), begun(event, event.data));
        break;
      case 'payment_settled':
      case 'settlement_confirmed':
        noteSettled(payments.get(keyOf(event.data)), event);
        break;
      case 'settlement_disproved':
      case 'settlement_reorged':
        noteTakenBack(payments.get(keyOf(event.data)), event);
        break;
      case 'enqueued':
      case 'enqueued_again':
        for (const payment of payments.values())
          if (payment.stream === event.stream && payment.nonce === event.data.payment_nonce) {
            payment.calls.push(event.data.call_id);
            payment.everEnqueued.push(event.data.call_id);
          }
        break;
      default:
    }
  }
  return payments;
}

function begun(
  { stream, seq, data }: Extract<RecordedEvent, { type: 'settlement_started' | 'redelivery_requested' }>,
  named: Named,
): RecordedPayment {
  return {
    key: keyOf(named),
    stream,
    nonce: named.payment_nonce,
    bodySha256: data.body_sha256,
    binding: data.binding,
    startedSeq: seq,
    settled: [],
    calls: [],
    everEnqueued: [],
    isReorgedOut: false,
    callerNonce: undefined,
    paymentId: undefined,
  };
}

/** Whether it is this request that the payment pays for; true if it was never started. */
export function isOwnRequest(payment: RecordedPayment | undefined, of: Presentation): boolean {
  if (!payment) return true;
  const { method, path, body } = of;
  const bodySha256 = sha256(body);
  const noCaller = { caller: undefined, callerNonce: undefined };
  // the others are told apart by their bodies
  const isBound =
    !isOfRoute(of) || payment.binding === bindingHash({ method, path, bodySha256, ...noCaller });
  return payment.bodySha256 === bodySha256 && isBound;
}

/** Payments without a call that the chain shows, of lost events or of refused requests: a refund is due for each. */
export function recoveredPayments(events: readonly RecordedEvent[]): Set<string> {
  const recovered = new Set<string>();
  for (const { type, data } of events) {
    if (type === 'payment_recovered') recovered.add(keyOf(data));
    if (type === 'redelivery_requested') recovered.delete(keyOf(data));
  }
  return recovered;
}

function noteSettled(payment: RecordedPayment | undefined, event: RecordedPayment['settled'][number]): void {
  if (!payment) return;
  payment.settled.push(event);
  payment.isReorgedOut = false;
}

type TakenBack = Extract<RecordedEvent, { type: 'settlement_disproved' | 'settlement_reorged' }>;

function noteTakenBack(payment: RecordedPayment | undefined, { type, data }: TakenBack): void {
  if (!payment) return;
  if (data.call === 'withdrawn') payment.calls.pop();
  if (type !== 'settlement_reorged') return;
  // the transfers that they name are gone
  payment.settled.length = 0;
  payment.isReorgedOut = true;
}

import type { EventData, RecordedEvent } from '../../../../ledger/rules/event.ts';
import { paidCallKey, paymentFromData, type SignedPayment } from '../../../../payments/rules/payment.ts';
import { emptyQuoteState, evolve, jobOf, type QuoteState } from '../../../../payments/rules/quote-state.ts';
import { claimKey, encodeClaim } from '../../../../ledger/store/claim-key.ts';
import type { AnyClaim, Claim } from '../../../../ledger/store/lane-command.ts';
import type { OutboxEntry, OutboxStatus } from './compare-calls.ts';
import { refundClaim } from '../../../../payments/store/recorded-claims.ts';
import {
  paymentClaim,
  paymentIdClaim,
  paymentKey,
  transferClaim,
} from '../../../../payments/store/claims.ts';

/** A claim whose row a payment must have. */
interface HeldClaim {
  readonly claim: AnyClaim;
  /**
   * `certain`: the row must be there. `with_call`: only while the payment's call is in the outbox; a failed payment that can never land
   * any more frees it without an event.
   */
  readonly held: 'certain' | 'with_call';
}

/** The claims and the call of the payment of one stream, as its events make them. */
export interface PaymentRows {
  /** As `paymentKey()` names it. */
  readonly key: string;
  /** The place of the event that began it. */
  readonly seq: number;
  readonly claims: readonly HeldClaim[];
  /** What the outbox must have of it. */
  readonly outboxEntry: OutboxEntry;
}

/** The payment of a stream of a quote or of a recovered payment; undefined before it has begun. */
export function paymentOf(events: readonly RecordedEvent[]): PaymentRows | undefined {
  let rows: OpenRows | undefined;
  let state = emptyQuoteState;
  let passed: EventData<'auth_passed'> | undefined;
  for (const event of events) {
    const before = state.payment;
    state = evolve(state, event);
    if (event.type === 'payment_verified') passed = undefined;
    if (event.type === 'auth_passed') passed = event.data;
    if (event.type === 'settlement_started' || event.type === 'payment_recovered')
      rows = new OpenRows(state, event, passed);
    // an event of another payment or call changes nothing
    else if (rows && (state.payment !== before || event.type === 'operator_discarded'))
      rows.take(event, state);
  }
  return rows?.close(state);
}

type Beginning = Extract<RecordedEvent, { type: 'settlement_started' | 'payment_recovered' }>;

class OpenRows {
  readonly #payment: SignedPayment;
  readonly #key: string;
  readonly #began: Beginning;
  readonly #caller: string | null;
  readonly #claims = new Map<string, Claim>();
  #transfer: string | undefined;
  /** Those that it frees once it can never land: a caller's nonce, and the payer's id for it. */
  readonly #credentials: readonly AnyClaim[];
  #credentialsHeld: HeldClaim['held'] | 'no' = 'certain';
  /** It failed while no event had named a call of it: since then its call may have been removed. */
  #mayBeRemoved = false;
  /** The call that was given up, or taken away with its failed payment. */
  #goneCall: number | undefined;

  constructor(state: QuoteState, began: Beginning, passed: EventData<'auth_passed'> | undefined) {
    this.#payment = paymentFromData(paymentIn(state).payment);
    this.#key = paymentKey(this.#payment);
    this.#began = began;
    this.#caller = passed?.caller ?? null;
    const isRecovered = began.type === 'payment_recovered';
    this.#hold(paymentClaim(this.#payment, isRecovered ? 'recovered' : began.data.binding));
    if (isRecovered) this.#claimTransfer(began.data.transaction, began.data.log_index);
    this.#credentials = isRecovered ? [] : this.#credentialsOf(began.data, state, passed);
  }

  #credentialsOf(
    { payment_id: id, binding }: EventData<'settlement_started'>,
    state: QuoteState,
    passed: EventData<'auth_passed'> | undefined,
  ): AnyClaim[] {
    const job = jobOf(state);
    const nonceSha256 = passed?.caller_nonce_sha256;
    const credentials: AnyClaim[] = [];
    if (nonceSha256 !== undefined && this.#caller !== null && job)
      credentials.push({ kind: 'caller_nonce', caller: this.#caller, ...job, nonceSha256 });
    if (id !== undefined)
      credentials.push(paymentIdClaim(this.#payment.payer, id, `${this.#key}/${binding}`));
    return credentials;
  }

  /** @param state after the event */
  take(event: RecordedEvent, state: QuoteState): void {
    const call = state.payment?.call;
    switch (event.type) {
      case 'payment_settled': {
        const { transaction, evidence, log_index: logIndex } = event.data;
        if (evidence !== 'facilitator') this.#claimTransfer(transaction, logIndex ?? 'unseen');
        return;
      }
      case 'settlement_confirmed':
        return this.#claimTransfer(event.data.transaction, event.data.log_index);
      case 'settlement_reorged':
        if (this.#transfer !== undefined) this.#claims.delete(this.#transfer);
        return;
      case 'settlement_failed':
        if (call) return;
        this.#mayBeRemoved = true;
        if (this.#credentialsHeld === 'certain') this.#credentialsHeld = 'with_call';
        return;
      case 'refunded':
        return void this.#hold(refundClaim(event.data, event.data.payment_nonce));
      case 'enqueued':
      case 'enqueued_again':
        this.#mayBeRemoved = false;
        return;
      case 'dead_lettered':
        if (event.data.reason !== 'settlement_failed' || state.payment?.status !== 'settlement_failed')
          return;
        this.#goneCall = event.data.call_id;
        this.#credentialsHeld = 'no';
        return;
      case 'operator_discarded':
        if (call?.callId === event.data.call_id) this.#goneCall = call.callId;
        return;
      default:
    }
  }

  close(state: QuoteState): PaymentRows {
    const held = this.#credentialsHeld;
    const certain = [...this.#claims.values()].map((claim) => ({ claim, held: 'certain' }) as const);
    const others = held === 'no' ? [] : this.#credentials.map((claim) => ({ claim, held }));
    return {
      key: this.#key,
      seq: this.#began.seq,
      claims: [...certain, ...others],
      outboxEntry: this.#outboxEntry(state),
    };
  }

  #outboxEntry(state: QuoteState): OutboxEntry {
    const [statuses, job] = [this.#statuses(state), jobOf(state)];
    const { stream, type } = this.#began;
    const body = type === 'settlement_started' ? this.#began.data : paymentIn(state).recovered?.redelivery;
    if (!statuses || !job || !body) return { payment: this.#key, stream, call: undefined };
    const { network, asset, symbol } = this.#payment;
    const call = paymentIn(state).call;
    const row = {
      service_id: job.serviceId,
      job_index: job.jobIndex,
      network,
      asset,
      symbol,
      caller: this.#caller,
      trigger_kind: null,
      trigger_name: null,
      trigger_id: null,
      idempotency_key: paidCallKey({ payment: this.#key, job, bodySha256: body.body_sha256 }),
      claims: this.#credentials.map(encodeClaim),
    };
    return {
      payment: this.#key,
      stream,
      call: {
        row,
        statuses,
        callId: call?.callId,
        mayBeMissing: !call && this.#mayBeRemoved,
        bodySha256: body.body_sha256,
        bodyBytes: body.body_bytes,
      },
    };
  }

  #statuses(state: QuoteState): readonly OutboxStatus[] | undefined {
    const { status, call, recovered } = paymentIn(state);
    const isSettled = status === 'settled';
    if (call) {
      if (call.status === 'completed' || call.callId === this.#goneCall) return undefined;
      if (call.status === 'dead_lettered') return ['dead'];
      return isSettled ? ['ready', 'leased'] : ['unpaid', 'pending'];
    }
    if (status === 'settlement_failed') return ['watched'];
    // a recovered payment waits for its release; another settled payment without a call waits for nothing
    if (isSettled && !recovered?.redelivery) return undefined;
    return this.#mayBeRemoved ? ['pending', 'watched'] : ['pending'];
  }

  #claimTransfer(transaction: string, logIndex: number | 'unseen'): void {
    const { network, nonce } = this.#payment;
    const key = this.#hold(transferClaim(network, transaction, logIndex, nonce));
    // a transfer that no node was asked for is never freed
    this.#transfer = logIndex === 'unseen' ? undefined : key;
  }

  #hold(claim: Claim): string {
    const key = claimKey(claim).toString('hex');
    this.#claims.set(key, claim);
    return key;
  }
}

function paymentIn({ payment }: QuoteState): NonNullable<QuoteState['payment']> {
  if (!payment) throw new Error('the stream has no payment');
  return payment;
}

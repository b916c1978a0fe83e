import type { EventData, RecordedEvent } from '../../../../ledger/rules/event.ts';
import { paidCallKey, type Fingerprint, paymentFromData } from '../../../../payments/rules/payment.ts';
import type { JobId } from '../../../../base/values/job.ts';
import type { Caip2, Hex } from '../../../../base/values/primitives.ts';
import { claimKey, type EncodedClaim, encodeClaim } from '../../../../ledger/store/claim-key.ts';
import type { AnyClaim, Claim } from '../../../../ledger/store/lane-command.ts';
import type { ExpectedCall, OutboxEntry, OutboxStatus } from './expected-call.ts';
import { refundClaim } from '../../../../payments/store/recorded-claims.ts';
import {
  paymentClaim,
  paymentIdClaim,
  paymentKey,
  transferClaim,
} from '../../../../payments/store/claims.ts';

/** A claim whose row a payment must have. */
export interface HeldClaim {
  readonly claim: AnyClaim;
  /**
   * `certain`: the row must be there. `with_call`: only while the payment's call is in the outbox; a failed payment that can never land
   * any more frees it without an event.
   */
  readonly held: 'certain' | 'with_call';
}

/** The claims and the call of one payment, as the events of its stream make them. */
export class PaymentRows {
  /** As `paymentKey()` names it. */
  readonly key: Hex;
  readonly #payment: Fingerprint & { readonly symbol: string };
  readonly #claims = new Map<string, HeldClaim>();
  readonly #startedAt: number;
  readonly #nonceSha256: string | undefined;
  readonly #caller: string | null;
  /** What the row of its call keeps of its claims. */
  #kept: readonly EncodedClaim[] = [];
  /** Those that it frees once it can never land: a caller's nonce, and the payer's id for it. */
  #credentials: readonly HeldClaim[] = [];
  #status: 'settling' | 'settled' | 'failed' = 'settling';
  #transfer: string | undefined;
  #isRecovered = false;
  #job: JobId | undefined;
  #body: { readonly sha256: string; readonly bytes: number } | undefined;
  #call: { readonly id: number; status: 'open' | 'completed' | 'dead' | 'gone' } | undefined;
  /** It failed while no event had named a call of it: since then its call may have been removed. */
  #mayBeRemoved = false;

  constructor(
    payment: Fingerprint & { readonly symbol: string },
    startedAt: number,
    of: {
      readonly job: JobId | undefined;
      readonly caller: string | null;
      readonly nonceSha256: string | undefined;
    },
  ) {
    this.key = paymentKey(payment);
    this.#payment = payment;
    this.#startedAt = startedAt;
    this.#job = of.job;
    this.#caller = of.caller;
    this.#nonceSha256 = of.nonceSha256;
  }

  /** The place of the event that began it. */
  get seq(): number {
    return this.#startedAt;
  }

  start(data: EventData<'settlement_started'>): void {
    this.#hold(paymentClaim(this.#payment, data.binding));
    const credentials: AnyClaim[] = [];
    if (this.#nonceSha256 !== undefined && this.#caller !== null && this.#job)
      credentials.push({
        kind: 'caller_nonce',
        caller: this.#caller,
        ...this.#job,
        nonceSha256: this.#nonceSha256,
      });
    if (data.payment_id !== undefined)
      credentials.push(paymentIdClaim(this.#payment.payer, data.payment_id, `${this.key}/${data.binding}`));
    this.#credentials = credentials.map((claim) => ({ claim, held: 'certain' }));
    this.#kept = credentials.map(encodeClaim);
    this.#body = { sha256: data.body_sha256, bytes: data.body_bytes };
  }

  recover(data: EventData<'payment_recovered'>): void {
    this.#isRecovered = true;
    this.#hold(paymentClaim(this.#payment, 'recovered'));
    this.#status = 'settled';
    this.#claimTransfer(data.transaction, data.log_index);
  }

  /** Whether an event names this payment, or its call. */
  isNamedBy({ data }: RecordedEvent): boolean {
    if ('payment_nonce' in data && 'network' in data && 'asset' in data && 'payer' in data)
      return (
        data.payment_nonce === this.#payment.nonce &&
        data.network === this.#payment.network &&
        data.asset === this.#payment.asset &&
        data.payer === this.#payment.payer
      );
    // a call that is enqueued is named with the nonce of the payment that waits for it
    if ('call_id' in data && 'payment_nonce' in data)
      return this.#status === 'settled' && this.#payment.nonce === data.payment_nonce && !this.#call;
    return 'call_id' in data && this.#call?.id === data.call_id;
  }

  apply(event: RecordedEvent): void {
    switch (event.type) {
      case 'redelivery_requested': {
        const { service_id, job_index, body_sha256, body_bytes } = event.data;
        this.#job = { serviceId: service_id, jobIndex: job_index };
        this.#body = { sha256: body_sha256, bytes: body_bytes };
        return;
      }
      case 'payment_settled': {
        const { transaction, evidence, log_index: logIndex } = event.data;
        this.#status = 'settled';
        if (evidence !== 'facilitator') this.#claimTransfer(transaction, logIndex ?? 'unseen');
        return;
      }
      case 'settlement_confirmed':
        this.#claimTransfer(event.data.transaction, event.data.log_index);
        return;
      case 'settlement_unknown':
        this.#status = 'settling';
        return;
      case 'settlement_reorged':
        if (this.#transfer !== undefined) this.#claims.delete(this.#transfer);
        this.#takeBack(event.data.call);
        return;
      case 'settlement_disproved':
        this.#takeBack(event.data.call);
        return;
      case 'settlement_failed':
        this.#fail();
        return;
      case 'refunded':
        this.#hold(refundClaim(event.data, event.data.payment_nonce));
        return;
      case 'enqueued':
      case 'enqueued_again':
        this.#call = { id: event.data.call_id, status: 'open' };
        this.#mayBeRemoved = false;
        return;
      case 'operator_requeued':
      case 'delivered':
        this.#moveCall('open');
        return;
      case 'completed':
        this.#moveCall('completed');
        return;
      case 'dead_lettered': {
        const isRemoved = this.#status === 'failed' && event.data.reason === 'settlement_failed';
        this.#moveCall(isRemoved ? 'gone' : 'dead');
        if (isRemoved) this.#credentials = [];
        return;
      }
      case 'operator_discarded':
        this.#moveCall('gone');
        return;
      default:
    }
  }

  claims(): HeldClaim[] {
    return [...this.#claims.values(), ...this.#credentials];
  }

  /** What the outbox must have of it. */
  outboxEntry(stream: string): OutboxEntry {
    return { payment: this.key, stream, call: this.#expectedCall(stream) };
  }

  #expectedCall(stream: string): ExpectedCall | undefined {
    const statuses = this.#statuses();
    if (!statuses || !this.#job || !this.#body) return undefined;
    const { network, asset, symbol } = this.#payment;
    return {
      payment: this.key,
      idempotencyKey: paidCallKey({ payment: this.key, job: this.#job, bodySha256: this.#body.sha256 }),
      stream,
      job: this.#job,
      token: { network, asset, symbol },
      caller: this.#caller,
      trigger: null,
      claims: this.#kept,
      callId: this.#call?.id,
      statuses,
      mayBeMissing: !this.#call && this.#mayBeRemoved,
      bodySha256: this.#body.sha256,
      bodyBytes: this.#body.bytes,
    };
  }

  #statuses(): readonly OutboxStatus[] | undefined {
    const isSettled = this.#status === 'settled';
    switch (this.#call?.status) {
      case 'open':
        return isSettled ? ['ready', 'leased'] : ['unpaid', 'pending'];
      case 'dead':
        return ['dead'];
      case 'completed':
      case 'gone':
        return undefined;
      case undefined:
        if (this.#status === 'failed') return ['watched'];
        // a recovered payment waits for its release; another settled payment without a call waits for nothing
        if (isSettled && !this.#isRedelivered()) return undefined;
        return this.#mayBeRemoved ? ['pending', 'watched'] : ['pending'];
    }
  }

  #isRedelivered(): boolean {
    return this.#isRecovered && this.#body !== undefined;
  }

  #fail(): void {
    this.#status = 'failed';
    if (this.#call) return;
    this.#mayBeRemoved = true;
    this.#credentials = this.#credentials.map(({ claim }) => ({ claim, held: 'with_call' }));
  }

  #takeBack(fate: 'withdrawn' | 'kept'): void {
    this.#status = 'settling';
    if (fate === 'withdrawn') this.#call = undefined;
  }

  #moveCall(status: 'open' | 'completed' | 'dead' | 'gone'): void {
    if (this.#call) this.#call.status = status;
  }

  #claimTransfer(transaction: string, logIndex: number | 'unseen'): void {
    const { network, nonce } = this.#payment;
    const key = this.#hold(transferClaim(network, transaction, logIndex, nonce));
    // a transfer that no node was asked for is never freed
    this.#transfer = logIndex === 'unseen' ? undefined : key;
  }

  #hold(claim: Claim): string {
    const key = claimKey(claim).toString('hex');
    this.#claims.set(key, { claim, held: 'certain' });
    return key;
  }
}

/** The payment of one stream of a quote or of a recovered payment. */
export function paymentOf(events: readonly RecordedEvent[]): PaymentRows | undefined {
  let payment: PaymentRows | undefined;
  let job: JobId | undefined;
  let passed: EventData<'auth_passed'> | undefined;
  for (const event of events) {
    switch (event.type) {
      case 'quote_issued':
        job = { serviceId: event.data.service_id, jobIndex: event.data.job_index };
        break;
      case 'payment_verified':
        passed = undefined;
        break;
      case 'auth_passed':
        passed = event.data;
        break;
      case 'settlement_started': {
        const of = {
          job,
          caller: passed?.caller ?? null,
          nonceSha256: passed?.caller_nonce_sha256,
        };
        payment = new PaymentRows(paymentFromData(event.data.payment), event.seq, of);
        payment.start(event.data);
        break;
      }
      case 'payment_recovered': {
        const of = { job: undefined, caller: null, nonceSha256: undefined };
        payment = new PaymentRows(recovered(event.data), event.seq, of);
        payment.recover(event.data);
        break;
      }
      default:
        if (payment?.isNamedBy(event)) payment.apply(event);
    }
  }
  return payment;
}

function recovered(data: EventData<'payment_recovered'>): Fingerprint & { readonly symbol: string } {
  return {
    network: data.network as Caip2,
    transferMethod: data.transfer_method,
    asset: data.asset as Hex,
    payer: data.payer as Hex,
    nonce: data.payment_nonce as Hex,
    symbol: data.symbol,
  };
}

import { createHash } from 'node:crypto';
import { encodeEventData, type LedgerEvent } from '../../src/domain/events/event.ts';
import type { Hex } from '../../src/domain/values/primitives.ts';
import { recordedDigest } from '../../src/domain/payments/quote.ts';

const network = 'eip155:84532';
const asset = `0x${'5f'.repeat(20)}`;
const payTo = `0x${'90'.repeat(20)}`;
const startMs = Date.parse('2026-11-20T06:00:00.000Z');

/** An event with its stream, before it has a `seq`. */
export interface StreamEvent {
  readonly stream: string;
  readonly event: LedgerEvent;
}

/** 32 bytes derived from a name, the same in every run. */
export function hex32Of(name: string): Hex {
  return `0x${createHash('sha256').update(name).digest('hex')}`;
}

/** A paid job from the quote to its result, seven events. */
export function paidJob(
  n: number,
  options: {
    readonly job?: number;
    readonly startMs?: number;
    readonly creditMicros?: string;
    readonly requester?: string;
    readonly inputsHash?: string;
    /** Of the body that was sent, as its payment records it. */
    readonly bodyKeccak256?: string;
  } = {},
): StreamEvent[] {
  const { job = n % 3, creditMicros, bodyKeccak256 } = options;
  const issuedAt = Math.floor((options.startMs ?? startMs) / 1_000);
  const terms = {
    network,
    transfer_method: 'eip3009',
    asset,
    symbol: 'USDC',
    decimals: 6,
    pay_to: payTo,
    eip712_name: 'USD Coin',
    eip712_version: '2',
  } as const;
  const amount = String(1_000 * (1 + job));
  const quote: Extract<LedgerEvent, { type: 'quote_issued' }> = {
    type: 'quote_issued',
    data: {
      service_id: 1,
      job_index: job,
      price_wei: '1000000000000000',
      // every third quote was recorded by its payment, which knew its other option by the hash alone
      options: [
        { ...terms, amount, ...(creditMicros && { credit_micros: creditMicros }) },
        ...(n % 3 === 0 ? [hex32Of(`another option ${n}`)] : []),
      ],
      requester: options.requester ?? `0x${'0'.repeat(40)}`,
      inputs_hash: options.inputsHash ?? `0x${'0'.repeat(64)}`,
      issued_at: issuedAt,
      expires_at: issuedAt + 300,
      salt: hex32Of(`salt ${n}`),
    },
  };
  const stream = recordedDigest(quote.data);
  const nonce = hex32Of(`nonce ${n}`);
  const payer = hex32Of(`payer ${n % 50}`).slice(0, 42);
  const named = { network, asset, payer, payment_nonce: nonce };
  const call = { call_id: n + 1, attempt: 1 };
  const events: LedgerEvent[] = [
    quote,
    { type: 'payment_verified', data: { ...named, by: 'facilitator' } },
    {
      type: 'settlement_started',
      data: {
        request_id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
        binding: hex32Of(`binding ${n}`),
        body_sha256: hex32Of(`body ${n}`),
        ...(bodyKeccak256 && { body_keccak256: bodyKeccak256 }),
        body_bytes: 100,
        payment: {
          ...terms,
          x402_version: 2,
          amount,
          payer,
          nonce,
          valid_after: '0',
          valid_before: String(issuedAt + 300),
          signature: `0x${hex32Of(`r ${n}`).slice(2)}${hex32Of(`s ${n}`).slice(2)}1b`,
          max_timeout_secs: 300,
        },
      },
    },
    {
      type: 'payment_settled',
      data: {
        ...named,
        amount,
        transaction: hex32Of(`transaction ${n}`),
        evidence: 'chain',
        block_number: String(1_000 + n),
        block_hash: hex32Of(`block ${n}`),
        log_index: n % 7,
      },
    },
    { type: 'enqueued', data: { call_id: n + 1, payment_nonce: nonce } },
    { type: 'delivered', data: call },
    { type: 'completed', data: { ...call, result_sha256: hex32Of(`result ${n}`), result_bytes: 12 } },
  ];
  return events.map((event) => ({ stream, event }));
}

/** The refund of a paid job, in its stream, by a transfer that is the n-th of those. */
export function refundOf(job: readonly StreamEvent[], n = 0, change: object = {}): StreamEvent {
  const settled = job.find(({ event }) => event.type === 'payment_settled');
  if (settled?.event.type !== 'payment_settled') throw new Error('this job is not paid');
  const { payer, payment_nonce, amount } = settled.event.data;
  const data = {
    network,
    asset,
    payer,
    payment_nonce,
    amount,
    refunded_from: payTo,
    refunded_to: payer,
    ...awayIn(`refund ${n}`),
    ...change,
  };
  return { stream: settled.stream, event: { type: 'refunded', data } };
}

/** The n-th sweep, in a stream of its own. */
export function sweepOf(n: number, change: object = {}): StreamEvent {
  const place = awayIn(`sweep ${n}`);
  const data = {
    network,
    asset,
    symbol: 'USDC',
    decimals: 6,
    pay_to: payTo,
    swept_to: `0x${'77'.repeat(20)}`,
    amount: String(100 + n),
    ...place,
    ...change,
  };
  const stream = `sweep:84532:${place.transaction}:${place.log_index}`;
  return { stream, event: { type: 'operator_sweep_recorded', data } };
}

function awayIn(name: string) {
  return {
    transaction: hex32Of(name),
    block_number: '9000',
    block_hash: hex32Of(`block of ${name}`),
    log_index: 4,
    operator: 'ada',
  };
}

/** Paid jobs, eight in progress at once, with an occasional refused request. */
export function* busyLedger(): Generator<StreamEvent> {
  for (let n = 0; ; n += 8) {
    const jobs = Array.from({ length: 8 }, (_, i) => paidJob(n + i));
    for (let step = 0; step < 7; step++) for (const job of jobs) yield* job.slice(step, step + 1);
    const stream = `request:00000000-0000-4000-9000-${String(n).padStart(12, '0')}`;
    yield { stream, event: { type: 'request_refused', data: { code: 'x402_disabled' } } };
  }
}

/** The leaf bytes of the first `count` events, as the ledger would write them. */
export function* leavesOf(events: Iterable<StreamEvent>, count: number): Generator<string> {
  const versions = new Map<string, number>();
  let seq = 0;
  for (const { stream, event } of events) {
    if (seq === count) return;
    seq += 1;
    const version = (versions.get(stream) ?? 0) + 1;
    versions.set(stream, version);
    const at = new Date(startMs + Math.floor(seq / 10)).toISOString();
    yield `{"at":"${at}","data":${encodeEventData(event)},"lane":1,"schema":1,"seq":${seq},"stream":"${stream}","type":"${event.type}","version":${version}}`;
  }
}

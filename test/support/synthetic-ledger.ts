import { createHash } from 'node:crypto';
import secp256k1 from 'secp256k1';
import { bytesToHex, concatHex, hexToBytes, numberToHex } from 'viem/utils';
import { encodeEventData, type LedgerEvent } from '../../src/ledger/rules/event.ts';
import type { SignedPaymentData } from '../../src/ledger/rules/payment-events.ts';
import { paymentFromData } from '../../src/payments/rules/payment.ts';
import { schemes } from '../../src/payments/rules/schemes/schemes.ts';
import { accountOf } from '../../src/base/values/ethereum-signature.ts';
import type { Address, Hex } from '../../src/base/values/primitives.ts';
import { recordedDigest } from '../../src/payments/rules/quote.ts';

const network = 'eip155:84532';
const asset = `0x${'5f'.repeat(20)}`;
export const payTo = `0x${'90'.repeat(20)}`;
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
    /** Of its payment. */
    readonly nonce?: Hex;
    /** The payer's key did not sign, but its contract is said to have. */
    readonly isSignedByContract?: boolean;
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
      // every third quote was recorded by its payment, which knew its other option only by the hash
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
  const { nonce = hex32Of(`nonce ${n}`), isSignedByContract } = options;
  const payerKey = payerKeyOf(n);
  const payer = accountOfKey(payerKey);
  const named = { network, asset, payer, payment_nonce: nonce };
  const payment = {
    ...terms,
    x402_version: 2,
    amount,
    payer,
    nonce,
    valid_after: '0',
    valid_before: String(issuedAt + 300),
    max_timeout_secs: 300,
  } as const;
  const call = { call_id: n + 1, attempt: 1 };
  const events: LedgerEvent[] = [
    quote,
    {
      type: 'payment_verified',
      data: { ...named, by: 'facilitator', ...(isSignedByContract && { signed_by: 'contract' }) },
    },
    {
      type: 'settlement_started',
      data: {
        request_id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
        binding: hex32Of(`binding ${n}`),
        body_sha256: hex32Of(`body ${n}`),
        ...(bodyKeccak256 && { body_keccak256: bodyKeccak256 }),
        body_bytes: 100,
        payment: {
          ...payment,
          signature: isSignedByContract ? `0x${'c0'.repeat(65)}` : signTerms(payerKey, payment),
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

/** The key of the payer of the n-th job. */
export function payerKeyOf(n: number): Hex {
  return hex32Of(`payer ${n % 50}`);
}

function accountOfKey(key: Hex): Address {
  return accountOf(secp256k1.publicKeyCreate(hexToBytes(key), false));
}

/** A payer's signature over the terms of a payment, as 65 bytes in hex. */
export function signTerms(key: Hex, terms: Omit<SignedPaymentData, 'signature'>): Hex {
  const digest = schemes[terms.transfer_method].digest(paymentFromData({ ...terms, signature: '0x' }));
  const { signature, recid } = secp256k1.ecdsaSign(digest, hexToBytes(key));
  return concatHex([bytesToHex(signature), numberToHex(27 + recid)]);
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

/** The n-th sweep, in its own stream. */
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

/** The n-th transfer that is not a payment, in its own stream. */
export function transferOf(n: number, change: object = {}): StreamEvent {
  const place = awayIn(`unexplained transfer ${n}`);
  const data = {
    as: 'suspense',
    network,
    asset,
    symbol: 'USDC',
    decimals: 6,
    pay_to: payTo,
    received_from: `0x${'77'.repeat(20)}`,
    amount: String(100 + n),
    ...place,
    ...change,
  };
  const stream = `transfer:84532:${place.transaction}:${place.log_index}`;
  return { stream, event: { type: 'operator_transfer_recorded', data } as StreamEvent['event'] };
}

/** The transfer that gave the n-th one back. */
export function returnOf(n: number) {
  const { operator: _, ...place } = placeOfReturn(n);
  return { as: 'returned', returned: { from: payTo, ...place } };
}

/** Where that transfer is, and who recorded it. */
export function placeOfReturn(n: number) {
  return awayIn(`return ${n}`);
}

/** What was recorded of the n-th one is taken back. */
export function reversalOf(n: number): StreamEvent {
  const { stream } = transferOf(n);
  const { transaction, log_index, operator } = awayIn(`unexplained transfer ${n}`);
  const data = { network, transaction, log_index, why: 'it was a payment', operator };
  return { stream, event: { type: 'operator_transfer_reversed', data } };
}

/** The reversal of what was recorded of a transaction's cost. */
export function costReversalOf({ stream, event }: StreamEvent, change: object = {}): StreamEvent {
  const {
    block_number: _,
    block_hash: __,
    block_time: ___,
    ...terms
  } = event.data as Record<string, unknown>;
  const data = { ...terms, why: 'somebody else paid for it', operator: 'ada', ...change };
  return { stream, event: { type: 'operator_cost_reversed', data } as StreamEvent['event'] };
}

/** What the n-th transaction of the operator cost. */
export function costOf(n: number, change: object = {}): StreamEvent {
  const { log_index: _, ...place } = awayIn(`cost ${n}`);
  const gas = { gas_used: '50000', gas_price_wei: '1000000007', block_time: 1_790_000_000 };
  const data = { network, purpose: 'refund', payer: payTo, symbol: 'ETH', ...gas, ...place, ...change };
  return {
    stream: `cost:84532:${place.transaction}`,
    event: { type: 'transaction_cost_recorded', data } as StreamEvent['event'],
  };
}

/** What an operator says of a break. */
export function explained(change: object = {}): StreamEvent {
  const break_id = hex32Of('a break');
  const data = {
    break_id,
    as: 'other',
    note: 'x',
    item_class: 'foreign_use',
    network,
    operator: 'ada',
    ...change,
  };
  return {
    stream: `break:${break_id}`,
    event: { type: 'operator_break_explained', data } as StreamEvent['event'],
  };
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

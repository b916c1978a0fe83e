import { paidCallKey, ofPayment, paymentFromData } from '../../src/payments/rules/payment.ts';
import type { EventData } from '../../src/ledger/rules/event.ts';
import { sha256 } from '../../src/base/values/sha256.ts';
import { recordedDigest, zeroAddress, zeroHash } from '../../src/payments/rules/quote.ts';
import { settlementState, startedState } from '../../src/payments/rules/settlement.ts';
import { foldQuote, paymentOf } from '../../src/payments/rules/quote-state.ts';
import { orderedUuid } from '../../src/base/values/ordered-uuid.ts';
import { recordDecision } from '../../src/payments/use-cases/record-settlement.ts';
import { readStream } from '../../src/ledger/store/streams.ts';
import { paymentClaim, paymentKey } from '../../src/payments/store/claims.ts';
import { hex32Of, signTerms } from '../support/synthetic-ledger.ts';
import { type Landed, network, payTo, units, type YearToken } from './chain.ts';
import type { Fate, Sale, World } from './world.ts';

export const topUpService = 9;
const validSecs = 300;

/** The n-th sale of the year, signed by its payer at the ledger's present time. A plain one is delivered without anything else. */
export function makeSale(world: World, n: number, isPlain = false): Sale {
  const { random, chain, payers, nowMs, options } = world;
  const token = random.pick(chain.tokens);
  const payer = random.pick(payers);
  const fate = isPlain ? 'delivered' : fateOf(n);
  const jobIndex = fate === 'top_up' ? 0 : random.between(0, 4);
  const serviceId = fate === 'top_up' ? topUpService : 1;
  const atoms = units(token, BigInt(random.between(1, 20))) / 10n + BigInt(random.between(0, 9_999));
  const creditMicros = fate === 'top_up' ? BigInt(random.between(1_000_000, 20_000_000)) : 0n;
  const issuedAt = Math.floor(nowMs / 1_000);
  const own = termsOf(token, atoms);
  const other = chain.tokens[(chain.tokens.indexOf(token) + 1) % chain.tokens.length] ?? token;
  const quote: EventData<'quote_issued'> = {
    service_id: serviceId,
    job_index: jobIndex,
    price_wei: '1000000000000000',
    options: [
      { ...own, ...(creditMicros > 0n && { credit_micros: String(creditMicros) }) },
      ...(n % 3 === 0 && fate !== 'top_up' ? [termsOf(other, units(other, 3n))] : []),
    ],
    requester: zeroAddress,
    inputs_hash: zeroHash,
    issued_at: issuedAt,
    expires_at: issuedAt + validSecs,
    salt: hex32Of(`${options.seed} salt ${n}`),
  };
  const unsigned = {
    ...own,
    x402_version: 2 as const,
    payer: payer.address,
    nonce: hex32Of(`${options.seed} nonce ${n}`),
    valid_after: '0',
    valid_before: String(issuedAt + validSecs),
    max_timeout_secs: validSecs,
  };
  const signed = { ...unsigned, signature: signTerms(payer.key, unsigned) };
  const digest = recordedDigest(quote);
  return {
    n,
    token,
    serviceId,
    jobIndex,
    fate,
    isReported: !isPlain && n % 23 === 5,
    creditMicros,
    digest,
    quote,
    payment: paymentFromData(signed),
    data: {
      request_id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
      binding: hex32Of(`${options.seed} binding ${n}`),
      body_sha256: sha256(bodyOf(n)),
      body_bytes: bodyOf(n).length,
      payment: signed,
    },
    started: undefined,
    booked: { name: digest, token, atoms, blockMs: undefined, settledMs: 0, dueAtoms: 0n },
  };
}

function termsOf({ address, symbol, decimals, name, version }: YearToken, atoms: bigint) {
  return {
    network,
    transfer_method: 'eip3009' as const,
    asset: address,
    symbol,
    decimals,
    pay_to: payTo,
    eip712_name: name,
    eip712_version: version,
    amount: String(atoms),
  };
}

function bodyOf(n: number): Buffer {
  return Buffer.from(`{"order":${n}}`);
}

function fateOf(n: number): Fate {
  if (n % 40 === 3) return 'top_up';
  if (n % 50 === 7) return 'dead_letter';
  return n % 120 === 11 ? 'goodwill' : 'delivered';
}

/** Records what a gateway records before it has the payment settled. */
export async function startSale({ ledger, open }: World, sale: Sale): Promise<void> {
  const { digest, quote, payment, data, serviceId, jobIndex } = sale;
  const { asset, symbol } = payment;
  const outcome = await ledger.lane.append({
    stream: digest,
    expect: 0,
    events: [
      { type: 'quote_issued', data: quote },
      { type: 'payment_verified', data: { ...ofPayment(payment), by: 'facilitator' } },
      { type: 'settlement_started', data },
    ],
    claims: [paymentClaim(payment, data.binding)],
    call: {
      op: 'add',
      serviceId,
      jobIndex,
      bodyId: orderedUuid(),
      body: { contentType: 'application/json', bytes: bodyOf(sale.n) },
      network,
      asset,
      symbol,
      caller: undefined,
      payment: paymentKey(payment),
      idempotencyKey: paidCallKey({
        payment: paymentKey(payment),
        job: { serviceId, jobIndex },
        bodySha256: data.body_sha256,
      }),
      delayMs: 5_000,
    },
  });
  if (outcome.outcome !== 'ok' || outcome.call_id === null)
    throw new Error(`sale ${sale.n} could not be started: ${outcome.outcome}`);
  sale.started = { digest, version: outcome.version, state: startedState(payment, outcome.call_id) };
  open.set(digest, sale);
}

/** Records an outcome of a started payment by the gateway's own decision. */
export async function recordSale(
  { ledger }: World,
  sale: Sale,
  outcome: Parameters<typeof recordDecision>[2],
): Promise<void> {
  if (!sale.started) throw new Error(`sale ${sale.n} was not started`);
  const recorded = await recordDecision(ledger, sale.started, outcome);
  if (recorded.kind !== 'recorded')
    throw new Error(`sale ${sale.n} could not be recorded as ${outcome.kind}: ${recorded.kind}`);
}

/** Reads the payment of a sale from its stream again. `isHeld`: its call cannot be leased. */
export async function readAgain({ ledger }: World, sale: Sale, heldCall?: number): Promise<void> {
  const quote = foldQuote((await readStream(ledger.pool, sale.digest)).events);
  const known = paymentOf(quote, sale.payment);
  if (!known) throw new Error(`sale ${sale.n} is not in the ledger`);
  const held = heldCall === undefined ? undefined : { callId: heldCall, attempt: 0 };
  sale.started = { digest: sale.digest, version: quote.version, state: settlementState(known, held) };
}

export function settledAt({ transaction, proof }: Landed, isReported: boolean) {
  return { kind: 'settled', transaction, proof: isReported ? undefined : proof } as const;
}

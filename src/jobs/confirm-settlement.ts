import type { EventData, LedgerEvent } from '../domain/events/event.ts';
import {
  expectedTransfer,
  ofPayment,
  paymentFromData,
  type SignedPayment,
} from '../domain/payments/payment.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { foldQuote, type PaymentState, paymentOf, type Settled } from '../domain/payments/quote-state.ts';
import { placeData, type PlacedTransfer } from '../domain/payments/transfer-place.ts';
import type { Block, Chain } from '../peers/chain/chain.ts';
import type { CallChange, Claim } from '../store/append-batch.ts';
import { type FollowUp, noteSeenBlock, type ProvenSettlement } from '../store/follow-ups.ts';
import { readStream, transferClaim } from '../store/streams.ts';
import { findSettlement } from './find-settlement.ts';
import type { JobsContext } from './context.ts';

/** What a settlement is held against: its chain, and how far that is final. */
export interface Finality {
  readonly chain: Chain;
  readonly finalized: Block;
}

/** How long a settlement that was told of may take to be seen by the node that is asked. */
const patienceSecs = 15;

interface SettledPayment {
  readonly digest: Hex;
  readonly version: number;
  readonly payment: SignedPayment;
  readonly known: PaymentState;
  readonly settled: Settled;
  readonly quotedAtSecs: number;
}

/** The payment that an event says is settled, as far as that still holds. */
async function readSettled(
  context: JobsContext,
  { stream, seq }: Pick<FollowUp, 'stream' | 'seq'>,
): Promise<SettledPayment | undefined> {
  const { events } = await readStream(context.pool, stream);
  const event = events.find((candidate) => candidate.seq === seq);
  if (event?.type !== 'payment_settled' && event?.type !== 'settlement_confirmed') return undefined;
  const story = foldQuote(events);
  const known = paymentOf(story, { ...event.data, nonce: event.data.payment_nonce });
  if (!known?.settled || known.settled.transaction !== event.data.transaction) return undefined;
  return {
    digest: stream as Hex,
    version: story.version,
    payment: paymentFromData(known.payment),
    known,
    settled: known.settled,
    quotedAtSecs: story.quote?.issued_at ?? 0,
  };
}

/**
 * A settlement whose block has another hash by now: `settlement_reorged`. The payment is open again, and its call is taken
 * back unless a runner has it. True where nothing is left to look at.
 */
export async function reopenReorged(context: JobsContext, proven: ProvenSettlement): Promise<boolean> {
  const found = await readSettled(context, proven);
  const proof = found?.settled.proof;
  if (!found || proof?.blockHash !== proven.blockHash) return true;
  const { payment, settled } = found;
  const data = { ...ofPayment(payment), transaction: settled.transaction };
  const block = { block_number: String(proof.blockNumber), block_hash: proof.blockHash };
  return takeBack(
    context,
    found,
    (call) => ({ type: 'settlement_reorged', data: { ...data, ...block, call } }),
    [transferClaim(payment.network, settled.transaction, proof.logIndex, payment.nonce)],
  );
}

/**
 * Looks for a settlement that stands on a facilitator's word, wherever on the chain it may have landed. There:
 * `settlement_confirmed`. Neither there nor on its way: `settlement_disproved`. True where nothing is left to look at.
 */
export async function confirmWord(
  context: JobsContext,
  followUp: FollowUp,
  finality: Finality,
): Promise<boolean> {
  const found = await readSettled(context, followUp);
  if (!found || found.settled.evidence !== 'facilitator') return true;
  const { payment, settled, quotedAtSecs } = found;
  const seen = await findSettlement(finality.chain, payment, [settled.transaction], quotedAtSecs);
  switch (seen.kind) {
    case 'paid':
      return confirm(context, found, { ...seen.proof, transaction: seen.transaction });
    case 'void':
      return disprove(context, found, seen.reason);
    case 'unused':
      return (await isOnItsWay(context, followUp, found, finality))
        ? false
        : disprove(context, found, 'not_on_chain');
    case 'undecided':
      return false;
  }
}

async function confirm(
  context: JobsContext,
  { digest, version, payment }: SettledPayment,
  proof: PlacedTransfer & { readonly transaction: Hex },
): Promise<boolean> {
  const { transaction, logIndex } = proof;
  const data: EventData<'settlement_confirmed'> = {
    ...ofPayment(payment),
    transaction,
    ...placeData(proof),
  };
  const { outcome } = await context.lane.append(
    {
      stream: digest,
      expect: version,
      events: [{ type: 'settlement_confirmed', data }],
      claims: [transferClaim(payment.network, transaction, logIndex, payment.nonce)],
    },
    { urgent: true },
  );
  // the confirmation has a follow-up of its own, until it is final; a lost claim may be one that a reorganisation frees
  return outcome === 'ok';
}

/**
 * Whether the transfer may still be coming. It is not where the node has never heard of the transaction, the chain is final
 * beyond where it stood when this was first looked for, and the authorization is unused there. Only the chain's own order
 * decides: clocks differ, and a lagging node says "unused" as well.
 */
async function isOnItsWay(
  context: JobsContext,
  { seq, seenAtBlock, ageSecs }: FollowUp,
  { payment, settled }: SettledPayment,
  { chain, finalized }: Finality,
): Promise<boolean> {
  if (seenAtBlock === undefined) {
    const latest = await chain.latestBlock();
    if (latest.kind === 'answer') await noteSeenBlock(context.pool, seq, latest.block.number);
    return true;
  }
  if (ageSecs < patienceSecs || finalized.number <= seenAtBlock) return true;
  const heard = await chain.knowsTransaction(settled.transaction as Hex);
  if (heard.kind === 'unavailable' || heard.isKnown) return true;
  const state = await chain.isUsed(expectedTransfer(payment), finalized.hash);
  return state.kind === 'unavailable' || state.used;
}

function disprove(context: JobsContext, found: SettledPayment, reason: string): Promise<boolean> {
  const { payment, settled } = found;
  const data = { ...ofPayment(payment), transaction: settled.transaction, reason };
  return takeBack(context, found, (call) => ({ type: 'settlement_disproved', data: { ...data, call } }), []);
}

/**
 * Opens a payment again, with its call where no runner has had that; where one has, the event itself is what the payment is
 * found by again. False where the stream moved: it is read again at the next look.
 */
async function takeBack(
  context: JobsContext,
  { digest, version, known, payment }: SettledPayment,
  event: (call: 'withdrawn' | 'kept') => LedgerEvent,
  freed: readonly Claim[],
): Promise<boolean> {
  const attempt = (then: 'withdrawn' | 'kept', call?: CallChange) =>
    context.lane.append(
      { stream: digest, expect: version, events: [event(then)], freed, ...(call ? { call } : {}) },
      { urgent: true },
    );
  const tell = (call: 'withdrawn' | 'kept'): void =>
    context.log.error(
      { quote_digest: digest, payer: payment.payer, call },
      'a settlement does not stand on the chain',
    );
  if (known.call?.status === 'enqueued') {
    const { outcome } = await attempt('withdrawn', { op: 'suspend', callId: known.call.callId });
    if (outcome === 'ok') tell('withdrawn');
    if (outcome !== 'lease_lost') return outcome === 'ok';
  }
  const { outcome } = await attempt('kept');
  if (outcome === 'ok') tell('kept');
  return outcome === 'ok';
}

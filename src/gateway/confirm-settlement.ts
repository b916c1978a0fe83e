import type { LedgerEvent } from '../domain/event.ts';
import { ofPayment, paymentFromData, type SignedPayment } from '../domain/payment.ts';
import type { Hex } from '../domain/primitives.ts';
import { foldStory, type PaymentStory, paymentOf, type Settled } from '../domain/story.ts';
import type { Block, Chain } from '../peers/chain.ts';
import type { CallChange, Claim } from '../store/append-batch.ts';
import type { Confirmation } from '../store/follow-ups.ts';
import { paymentKey, readStream } from '../store/streams.ts';
import type { Gateway } from './gateway.ts';
import { findSettlement } from './find-settlement.ts';
import { resolveSettlement } from './resolve-settlement.ts';
import { proofData, transferClaim } from './settlement-outcome.ts';

/** What a settlement is held against: its chain, and how far that is final. */
export interface Finality {
  readonly chain: Chain;
  readonly finalized: Block;
}

/** Clocks of chain and database may differ by this. */
const clockSkewSecs = 10;

interface SettledPayment {
  readonly digest: Hex;
  readonly version: number;
  readonly payment: SignedPayment;
  readonly known: PaymentStory;
  readonly settled: Settled;
  readonly settledAtSecs: number;
  readonly quotedAtSecs: number;
}

/**
 * Looks once more at a settlement that is not known to be final. Proven on the chain where only somebody's word spoke for
 * it: `settlement_confirmed`. Neither there nor on its way: `settlement_disproved`. Its block replaced:
 * `settlement_reorged`. The call is taken back with it unless a runner has it. True where nothing is left to look at.
 */
export async function confirmSettlement(
  gateway: Gateway,
  confirmation: Confirmation,
  finality: Finality,
): Promise<boolean> {
  const { stream, seq, block, ageSecs } = confirmation;
  const digest = stream as Hex;
  const { events } = await readStream(gateway.pool, digest);
  const event = events.find((candidate) => candidate.seq === seq);
  if (event?.type !== 'payment_settled' && event?.type !== 'settlement_confirmed') return true;
  const story = foldStory(events);
  const known = paymentOf(story, { ...event.data, nonce: event.data.payment_nonce });
  if (!known) return true;
  const payment = paymentFromData(known.payment);
  if (!known.settled) {
    // taken back while a runner had the call: no held call leads here, so this is where it goes on
    if (known.call && known.status !== 'settlement_failed')
      await resolveSettlement(gateway, { stream, payment: paymentKey(payment), ageSecs });
    return !known.call || known.status === 'settlement_failed';
  }
  const { settled } = known;
  const isAboutThis = settled.transaction === event.data.transaction;
  if (!isAboutThis || (settled.proof && !block)) return true;
  const found: SettledPayment = {
    digest,
    version: story.version,
    payment,
    known,
    settled,
    settledAtSecs: Date.parse(event.at) / 1_000,
    quotedAtSecs: story.quote?.issued_at ?? 0,
  };
  if (block) return confirmFinal(gateway, found, block.number, finality);
  return settled.evidence === 'operator' || confirmWord(gateway, found, finality);
}

/** A settlement in a block: it stands for good where that block is final, and is open again where another took its place. */
async function confirmFinal(
  gateway: Gateway,
  found: SettledPayment,
  blockNumber: bigint,
  { chain }: Finality,
): Promise<boolean> {
  const { proof, transaction } = found.settled;
  if (!proof || proof.blockNumber !== blockNumber) return true;
  const at = await chain.blockHashAt(blockNumber);
  if (at.kind === 'unavailable') return false;
  if (at.hash === proof.blockHash) return true;
  await takeBack(gateway, found, {
    event: (call) => ({
      type: 'settlement_reorged',
      data: {
        ...ofPayment(found.payment),
        transaction,
        block_number: String(proof.blockNumber),
        block_hash: proof.blockHash,
        call,
      },
    }),
    freed: [transferClaim(found.payment.network, transaction, proof.logIndex, found.payment.nonce)],
  });
  return false;
}

/** A settlement that stands on a facilitator's word: looked for on the chain, wherever it may have landed. */
async function confirmWord(
  gateway: Gateway,
  found: SettledPayment,
  { chain, finalized }: Finality,
): Promise<boolean> {
  const { payment, settled, digest, version } = found;
  const seen = await findSettlement(chain, payment, [settled.transaction], found.quotedAtSecs);
  switch (seen.kind) {
    case 'paid': {
      const { transaction, proof } = seen;
      const recorded = await gateway.lane.append(
        {
          stream: digest,
          expect: version,
          events: [
            {
              type: 'settlement_confirmed',
              data: { ...ofPayment(payment), transaction, ...proofData(proof) },
            },
          ],
          claims: [transferClaim(payment.network, transaction, proof.logIndex, payment.nonce)],
        },
        { urgent: true },
      );
      // the confirmation has a follow-up of its own, until it is final
      if (recorded.outcome === 'ok') return true;
      return recorded.outcome === 'lost' && disprove(gateway, found, 'transfer_already_claimed');
    }
    case 'void':
      return disprove(gateway, found, seen.reason);
    case 'unused': {
      // what had been settled by then would be in this block
      if (finalized.timestampSecs <= found.settledAtSecs + clockSkewSecs) return false;
      const { asset, payer, nonce } = payment;
      const state = await chain.authorizationStateAt(asset, payer, nonce, finalized.hash);
      return state.kind === 'answer' && !state.used && disprove(gateway, found, 'not_on_chain');
    }
    case 'undecided':
      return false;
  }
}

async function disprove(gateway: Gateway, found: SettledPayment, reason: string): Promise<boolean> {
  const { payment, settled } = found;
  return takeBack(gateway, found, {
    event: (call) => ({
      type: 'settlement_disproved',
      data: { ...ofPayment(payment), transaction: settled.transaction, reason, call },
    }),
  });
}

interface Withdrawal {
  readonly event: (call: 'withdrawn' | 'kept') => LedgerEvent;
  readonly freed?: readonly Claim[];
}

/** Opens a payment again, with its call where no runner has that yet. True where a held call leads back to it. */
async function takeBack(
  gateway: Gateway,
  found: SettledPayment,
  { event, freed }: Withdrawal,
): Promise<boolean> {
  const { digest, version, known, payment } = found;
  const callId = known.call?.callId;
  const attempt = (then: 'withdrawn' | 'kept', call?: CallChange) =>
    gateway.lane.append(
      {
        stream: digest,
        expect: version,
        events: [event(then)],
        ...(freed ? { freed } : {}),
        ...(call ? { call } : {}),
      },
      { urgent: true },
    );
  if (callId !== undefined && known.call?.status === 'enqueued') {
    const { outcome } = await attempt('withdrawn', { op: 'hold_back', callId });
    if (outcome === 'ok') tell(gateway, digest, payment, 'withdrawn');
    // a stream that moved is read again at the next look
    if (outcome !== 'lease_lost') return outcome === 'ok';
  }
  const { outcome } = await attempt('kept');
  if (outcome === 'ok') tell(gateway, digest, payment, 'kept');
  return false;
}

function tell(gateway: Gateway, digest: Hex, { payer }: SignedPayment, call: 'withdrawn' | 'kept'): void {
  gateway.log.error({ quote_digest: digest, payer, call }, 'a settlement does not stand on the chain');
}

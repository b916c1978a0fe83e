import type { LedgerEvent } from '../domain/event.ts';
import { type Fingerprint, ofPayment, type SignedPayment } from '../domain/payment.ts';
import type { Address, Hex } from '../domain/primitives.ts';
import { facilitatorRequest } from '../domain/x402.ts';
import { foldStory, type PaymentStory, paymentOf } from '../domain/story.ts';
import type { ExpectedTransfer } from '../peers/chain.ts';
import type { SettleAnswer } from '../peers/facilitator.ts';
import type { Claim, LaneCommand } from '../store/append-batch.ts';
import { paymentClaim, readStream } from '../store/streams.ts';
import type { Gateway } from './gateway.ts';

/** A payment whose `settlement_started` is recorded. From here on it is finished, whatever happens. */
export interface StartedPayment {
  readonly digest: Hex;
  readonly payment: SignedPayment;
  readonly callId: number;
  /** The stream's version after `settlement_started`. */
  readonly version: number;
  /** What it holds. Where it fails before broadcast it gives up all but its own name: quote and nonce are free again. */
  readonly claims: readonly Claim[];
}

type Outcome =
  | {
      readonly kind: 'settled';
      readonly transaction: Hex;
      readonly proof:
        | { readonly blockNumber: bigint; readonly blockHash: Hex; readonly logIndex: number }
        | undefined;
    }
  | { readonly kind: 'failed'; readonly reason: string }
  /** `settledPayer` where the facilitator says that somebody else paid. */
  | {
      readonly kind: 'unknown';
      readonly reason: string;
      readonly transaction?: Hex;
      readonly settledPayer?: Address;
    };

/** Another process recorded an outcome first, and that one holds. */
interface Superseded {
  readonly kind: 'superseded';
}

/**
 * Reasons a facilitator gives before it broadcasts anything. Only these can mean "not paid", and only while the chain
 * agrees: every other failure has been seen with the money gone.
 */
const beforeBroadcast = new Set([
  'insufficient_funds',
  'invalid_exact_evm_signature',
  'invalid_exact_evm_payload_signature',
  'invalid_exact_evm_insufficient_balance',
  'invalid_exact_evm_authorization_value',
  'invalid_exact_evm_payload_authorization_value',
  'invalid_exact_evm_payload_authorization_value_mismatch',
  'invalid_exact_evm_payload_authorization_valid_after',
  'invalid_exact_evm_payload_authorization_valid_before',
  'invalid_exact_evm_recipient_mismatch',
  'invalid_exact_evm_payload_recipient_mismatch',
]);

/**
 * Settles a started payment and records what became of it: paid and enqueued in one append, failed, or unknown.
 * Returns the state that is now on record. Where another process recorded an outcome first, that one holds.
 */
export async function settlePayment(
  gateway: Gateway,
  started: StartedPayment,
): Promise<Outcome | Superseded> {
  const answer = await gateway.facilitator.settle(facilitatorRequest(started.payment, started.digest));
  const outcome = await judge(gateway, started.payment, answer);
  if (outcome.kind !== 'settled') {
    gateway.log.warn({ quote_digest: started.digest, reason: outcome.reason }, `settlement ${outcome.kind}`);
  }
  return recordOutcome(gateway, started, outcome);
}

/**
 * Records an outcome at wherever the stream stands by now: other events may have come in between, and only another
 * outcome of this very payment makes this one superfluous.
 */
async function recordOutcome(
  gateway: Gateway,
  started: StartedPayment,
  outcome: Outcome,
): Promise<Outcome | Superseded> {
  const recorded = await gateway.lane.append(outcomeCommand(started, outcome), { urgent: true });
  switch (recorded.outcome) {
    case 'ok':
      if (outcome.kind === 'settled') gateway.onCallReleased();
      return outcome;
    case 'lost':
      // one transfer pays once: this one already paid for something else, so ours is not proven
      return recordOutcome(gateway, started, { kind: 'unknown', reason: 'transfer_already_claimed' });
    case 'same':
    case 'stale':
    case 'lease_lost': {
      const story = foldStory((await readStream(gateway.pool, started.digest)).events);
      const known = paymentOf(story, started.payment);
      if (!known || isDecided(known, outcome) || story.version === started.version)
        return { kind: 'superseded' };
      return recordOutcome(gateway, { ...started, version: story.version }, outcome);
    }
  }
}

/** Whether what is on record leaves nothing for this outcome to say: an unknown one can still be found out. */
function isDecided({ status }: PaymentStory, outcome: Outcome): boolean {
  if (status === 'settling') return false;
  return status !== 'settlement_unknown' || outcome.kind === 'unknown';
}

async function judge(gateway: Gateway, payment: SignedPayment, answer: SettleAnswer): Promise<Outcome> {
  switch (answer.kind) {
    case 'settled':
      return judgeSuccess(gateway, payment, answer);
    case 'failed':
      return judgeFailure(gateway, payment, answer);
    case 'not_sent':
      return { kind: 'unknown', reason: answer.cause };
    case 'unknown':
      return { kind: 'unknown', reason: answer.cause };
  }
}

/** A facilitator's word is unsigned: it must at least speak of this payment, and the chain is asked as well. */
async function judgeSuccess(
  gateway: Gateway,
  payment: SignedPayment,
  answer: Extract<SettleAnswer, { kind: 'settled' }>,
): Promise<Outcome> {
  const { transaction } = answer;
  if (answer.network !== payment.network) return { kind: 'unknown', reason: 'network_mismatch', transaction };
  if (answer.payer !== undefined && answer.payer !== payment.payer) {
    gateway.log.error(
      { payer: payment.payer, settled_payer: answer.payer, transaction },
      'payer mismatch: somebody else is said to have paid',
    );
    return { kind: 'unknown', reason: 'payer_mismatch', transaction, settledPayer: answer.payer };
  }
  const chain = gateway.chains.get(payment.network);
  if (!chain || gateway.x402.confirm !== 'before') return { kind: 'settled', transaction, proof: undefined };
  const found = await chain.waitForSettlement(
    transaction,
    expectedTransfer(payment),
    gateway.x402.confirmTimeoutMs,
  );
  switch (found.kind) {
    case 'paid':
      return { kind: 'settled', transaction, proof: found };
    case 'contradicted':
      return { kind: 'unknown', reason: `chain_says_${found.why}`, transaction };
    case 'absent':
    case 'unavailable':
      return { kind: 'settled', transaction, proof: undefined };
  }
}

async function judgeFailure(
  gateway: Gateway,
  payment: SignedPayment,
  answer: Extract<SettleAnswer, { kind: 'failed' }>,
): Promise<Outcome> {
  const { reason, transaction } = answer;
  const unknown: Outcome = { kind: 'unknown', reason, ...(transaction ? { transaction } : {}) };
  const chain = gateway.chains.get(payment.network);
  if (transaction || !beforeBroadcast.has(reason) || !chain) return unknown;
  const state = await chain.authorizationState(payment.asset, payment.payer, payment.nonce);
  return state.kind === 'answer' && !state.used ? { kind: 'failed', reason } : unknown;
}

function expectedTransfer(payment: SignedPayment): ExpectedTransfer {
  const { asset, payer, payTo, amount, nonce } = payment;
  return { asset, from: payer, payTo, value: amount, nonce };
}

function outcomeCommand(started: StartedPayment, outcome: Outcome): LaneCommand {
  const { digest, payment, callId, version } = started;
  const named = ofPayment(payment);
  const base = { stream: digest, expect: version };
  switch (outcome.kind) {
    case 'settled':
      return {
        ...base,
        events: [
          settledEvent(payment, outcome),
          { type: 'enqueued', data: { call_id: callId, payment_nonce: payment.nonce } },
        ],
        claims: outcome.proof ? [transferClaim(payment, outcome.transaction, outcome.proof.logIndex)] : [],
        call: { op: 'release', callId },
      };
    case 'failed':
      return {
        ...base,
        events: [{ type: 'settlement_failed', data: { ...named, reason: outcome.reason } }],
        freed: started.claims.filter(({ kind }) => kind !== 'payment'),
        call: { op: 'withdraw', callId },
      };
    case 'unknown': {
      const { reason, transaction, settledPayer } = outcome;
      const data = { ...named, reason, ...(transaction ? { transaction } : {}) };
      const unknown: LedgerEvent = { type: 'settlement_unknown', data };
      if (!settledPayer) return { ...base, events: [unknown] };
      const mismatch: LedgerEvent = {
        type: 'payer_mismatch',
        data: { ...named, settled_payer: settledPayer },
      };
      return { ...base, events: [mismatch, unknown] };
    }
  }
}

function settledEvent(payment: SignedPayment, outcome: Extract<Outcome, { kind: 'settled' }>): LedgerEvent {
  const { proof } = outcome;
  return {
    type: 'payment_settled',
    data: {
      ...ofPayment(payment),
      amount: String(payment.amount),
      transaction: outcome.transaction,
      evidence: proof ? 'chain' : 'facilitator',
      ...(proof
        ? { block_number: String(proof.blockNumber), block_hash: proof.blockHash, log_index: proof.logIndex }
        : {}),
    },
  };
}

/** One quote, one payment: the holder is named by its payment, so that the same payment knows itself. */
export function quoteClaim(digest: Hex, payment: Fingerprint): Claim {
  const { owner, scope, key } = paymentClaim(payment, '');
  return { kind: 'quote', owner: '', scope: '', key: digest, binding: `${scope}/${owner}/${key}` };
}

function transferClaim(payment: SignedPayment, transaction: Hex, logIndex: number): Claim {
  return {
    kind: 'transfer',
    owner: '',
    scope: payment.network,
    key: `${transaction}/${logIndex}`,
    binding: payment.nonce,
  };
}

import type { LedgerEvent } from '../domain/event.ts';
import { ofPayment, paymentFromData, type SignedPayment } from '../domain/payment.ts';
import type { Hex } from '../domain/primitives.ts';
import { foldStory, type PaymentStory } from '../domain/story.ts';
import type { Chain } from '../peers/chain.ts';
import type { LaneCommand } from '../store/append-batch.ts';
import { paymentKey, readStream } from '../store/streams.ts';
import { findUnsettled, listUnsettled } from '../store/unsettled.ts';
import type { Gateway } from './gateway.ts';
import { expectedTransfer } from './settle-payment.ts';
import { type Proof, proofData, transferClaim } from './settlement-outcome.ts';

type Ledger = Pick<Gateway, 'pool' | 'db' | 'lane'>;

/** A settlement that nobody knows the outcome of, as an operator sees it. */
export interface OpenSettlementRow {
  readonly digest: string;
  readonly callId: number;
  readonly since: Date;
  /** A machine word: why it is unknown, or `settling` where nothing has been said yet. */
  readonly reason: string;
  readonly payment: PaymentStory['payment'] | undefined;
  /** Transactions that a facilitator named for it. */
  readonly hints: readonly string[];
}

/** What is open, oldest first. */
export async function listOpenSettlements(ledger: Ledger, limit: number): Promise<OpenSettlementRow[]> {
  const calls = await listUnsettled(ledger.db, limit);
  return Promise.all(
    calls.map(async ({ call_id, stream, payment, created_at }) => {
      const known = await readPayment(ledger, stream, payment);
      const reason = known?.story.reason ?? known?.story.status ?? 'not_in_the_ledger';
      return {
        digest: stream,
        callId: call_id,
        since: created_at,
        reason,
        payment: known?.story.payment,
        hints: known?.story.hints ?? [],
      };
    }),
  );
}

/** An operator's own word on a settlement, with the reasons for it. */
export interface Decision {
  readonly paid: boolean;
  /** The transaction that paid, where it did. */
  readonly transaction: Hex | undefined;
  /** Visible ASCII, for whoever audits. */
  readonly evidence: string;
  readonly operator: string;
}

export type Decided =
  | 'done'
  /** No settlement of that quote is open. */
  | 'not_open'
  /** Several payments of that quote are open: the payer's nonce has to say which. */
  | 'ambiguous'
  /** The chain says otherwise: the transaction does not carry the transfer. */
  | 'contradicted'
  | 'chain_unavailable'
  /** That transaction has paid for something else. */
  | 'transfer_already_claimed'
  /** Something else was recorded meanwhile. */
  | 'superseded';

/**
 * Records an operator's decision on an open settlement, and what follows from it: paid → settled and enqueued, unpaid →
 * failed. Where a chain is given, a transaction has to hold before it.
 */
export async function decideSettlement(
  ledger: Ledger,
  digest: Hex,
  decision: Decision,
  chainOf: (network: string) => Chain | undefined,
): Promise<Decided> {
  const calls = (await findUnsettled(ledger.db, digest)).filter(({ status }) => status === 'held');
  const [call, ...others] = calls;
  if (!call) return 'not_open';
  if (others.length > 0) return 'ambiguous';
  const known = await readPayment(ledger, digest, call.payment);
  if (!known || known.story.status === 'settled') return 'not_open';
  const payment = paymentFromData(known.story.payment);
  const proof = await prove(payment, decision, chainOf(payment.network));
  if (typeof proof === 'string') return proof;
  const command = decisionCommand(digest, known.version, call.call_id, payment, decision, proof);
  const { outcome } = await ledger.lane.append(command);
  if (outcome === 'ok') return 'done';
  return outcome === 'lost' ? 'transfer_already_claimed' : 'superseded';
}

async function readPayment(ledger: Ledger, stream: string, key: string | null) {
  const story = foldStory((await readStream(ledger.pool, stream)).events);
  const found = story.payments.find(({ payment }) => paymentKey(paymentFromData(payment)) === key);
  return found && { version: story.version, story: found };
}

async function prove(
  payment: SignedPayment,
  { paid, transaction }: Decision,
  chain: Chain | undefined,
): Promise<Proof | undefined | 'contradicted' | 'chain_unavailable'> {
  if (!chain) return undefined;
  if (paid && transaction) {
    const found = await chain.findSettlement(transaction, expectedTransfer(payment));
    if (found.kind === 'paid') return found;
    return found.kind === 'unavailable' ? 'chain_unavailable' : 'contradicted';
  }
  const state = await chain.authorizationState(payment.asset, payment.payer, payment.nonce);
  if (state.kind === 'unavailable') return 'chain_unavailable';
  return state.used ? 'contradicted' : undefined;
}

function decisionCommand(
  digest: Hex,
  version: number,
  callId: number,
  payment: SignedPayment,
  { paid, transaction, evidence, operator }: Decision,
  proof: Proof | undefined,
): LaneCommand {
  const named = ofPayment(payment);
  const decided: LedgerEvent = {
    type: 'operator_settlement_resolved',
    data: { ...named, paid, evidence, operator, ...(transaction ? { transaction } : {}) },
  };
  const base = { stream: digest, expect: version };
  if (!paid || !transaction) {
    const data = { ...named, reason: 'operator_decision' };
    const failed: LedgerEvent = { type: 'settlement_failed', data };
    return { ...base, events: [decided, failed], call: { op: 'watch', callId } };
  }
  const settled: LedgerEvent = {
    type: 'payment_settled',
    data: {
      ...named,
      amount: String(payment.amount),
      transaction,
      evidence: 'operator',
      ...(proof ? proofData(proof) : {}),
    },
  };
  const enqueued: LedgerEvent = {
    type: 'enqueued',
    data: { call_id: callId, payment_nonce: payment.nonce },
  };
  return {
    ...base,
    events: [decided, settled, enqueued],
    claims: [transferClaim(payment.network, transaction, proof?.logIndex ?? 'unseen', payment.nonce)],
    call: { op: 'release', callId },
  };
}

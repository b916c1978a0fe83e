import type { LedgerEvent } from '../domain/events/event.ts';
import {
  expectedTransfer,
  ofPayment,
  paymentFromData,
  type SignedPayment,
} from '../domain/payments/payment.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { foldQuote, type PaymentState } from '../domain/payments/quote-state.ts';
import { placeData } from '../domain/payments/transfer-place.ts';
import type { Chain } from '../peers/chain/chain.ts';
import type { LaneCommand } from '../store/append-batch.ts';
import { paymentKey, readStream, transferClaim } from '../store/streams.ts';
import { findUnsettled, listUnsettled } from '../store/unsettled.ts';
import { listKept } from '../store/follow-ups.ts';
import type { JobsContext } from './context.ts';
import { findKept } from './resolve-settlement.ts';
import type { Proof } from './settlement-outcome.ts';

type Ledger = Pick<JobsContext, 'pool' | 'db' | 'lane'>;

/** So long a first settle may take, whatever is configured. */
const youngMs = 60_000;

/** A settlement that nobody knows the outcome of, as an operator sees it. */
export interface OpenSettlementRow {
  readonly digest: string;
  readonly since: Date;
  /** A runner has its call: only the money is open. */
  readonly isWithRunner: boolean;
  /** A machine word: why it is unknown, or `settling` where nothing has been said yet. */
  readonly reason: string;
  readonly payment: PaymentState['payment'] | undefined;
  /** Transactions that a facilitator named for it. */
  readonly hints: readonly string[];
}

/** What is open, oldest first. */
export async function listOpenSettlements(ledger: Ledger, limit: number): Promise<OpenSettlementRow[]> {
  const [calls, kept] = await Promise.all([listUnsettled(ledger.db, limit), listKept(ledger.db, limit)]);
  const waiting = calls.map(async ({ stream, payment, created_at }) =>
    rowOf(stream, created_at, (await readPayment(ledger, stream, payment))?.story),
  );
  const withRunners = kept.map(async ({ stream, seq, created_at }) =>
    rowOf(stream, created_at, await findKept(ledger, stream, seq)),
  );
  const rows = await Promise.all([...waiting, ...withRunners]);
  return rows.toSorted((a, b) => a.since.getTime() - b.since.getTime());
}

function rowOf(digest: string, since: Date, known: PaymentState | undefined): OpenSettlementRow {
  const reason = known?.reason ?? known?.status ?? 'not_in_the_ledger';
  return {
    digest,
    since,
    reason,
    isWithRunner: known?.call !== undefined,
    payment: known?.payment,
    hints: known?.hints ?? [],
  };
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
  /** Several payments of that quote are open. */
  | 'ambiguous'
  /** Its first settle may still be under way. */
  | 'too_young'
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
  const story = foldQuote((await readStream(ledger.pool, digest)).events);
  const open = story.payments.filter(
    ({ status }) => status === 'settling' || status === 'settlement_unknown',
  );
  const [known, ...others] = open;
  if (!known) return 'not_open';
  if (others.length > 0) return 'ambiguous';
  const payment = paymentFromData(known.payment);
  const ageMs = Date.now() - Date.parse(known.startedAt);
  if (known.status === 'settling' && !decision.paid && ageMs < youngMs) return 'too_young';
  const held = (await findUnsettled(ledger.db, digest)).find((call) => call.payment === paymentKey(payment));
  if (!held && !known.call) return 'not_open';
  const proof = await prove(payment, decision, chainOf(payment.network));
  if (typeof proof === 'string') return proof;
  const command = decisionCommand(digest, story.version, held?.call_id, payment, decision, proof);
  const { outcome } = await ledger.lane.append(command);
  if (outcome === 'ok') return 'done';
  return outcome === 'lost' ? 'transfer_already_claimed' : 'superseded';
}

async function readPayment(ledger: Ledger, stream: string, key: string | null) {
  const story = foldQuote((await readStream(ledger.pool, stream)).events);
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
  const state = await chain.isUsed(expectedTransfer(payment));
  if (state.kind === 'unavailable') return 'chain_unavailable';
  return state.used ? 'contradicted' : undefined;
}

function decisionCommand(
  digest: Hex,
  version: number,
  callId: number | undefined,
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
    return {
      ...base,
      events: [decided, failed],
      ...(callId === undefined ? {} : { call: { op: 'watch', callId } }),
    };
  }
  const settled: LedgerEvent = {
    type: 'payment_settled',
    data: {
      ...named,
      amount: String(payment.amount),
      transaction,
      evidence: 'operator',
      ...(proof ? placeData(proof) : {}),
    },
  };
  const claims = [transferClaim(payment.network, transaction, proof?.logIndex ?? 'unseen', payment.nonce)];
  if (callId === undefined) return { ...base, events: [decided, settled], claims };
  const enqueued: LedgerEvent = {
    type: 'enqueued',
    data: { call_id: callId, payment_nonce: payment.nonce },
  };
  return { ...base, events: [decided, settled, enqueued], claims, call: { op: 'release', callId } };
}

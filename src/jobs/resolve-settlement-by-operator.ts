import { expectedTransfer, paymentFromData, type SignedPayment } from '../domain/payments/payment.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { foldQuote } from '../domain/payments/quote-state.ts';
import { type SettlementOutcome, settlementState } from '../domain/payments/settlement.ts';
import type { Chain } from '../peers/chain/chain.ts';
import { paymentKey, readStream } from '../store/streams.ts';
import { findUnsettled } from '../store/unsettled.ts';
import type { JobsContext } from './context.ts';
import { recordDecision } from './record-settlement.ts';

/** The first settle request of a payment may take this long, whatever is configured. */
const firstSettleMs = 60_000;

/** An operator's own knowledge about a settlement, with the evidence for it. */
export interface OperatorResolution {
  /** The transaction that paid, or that there is none. */
  readonly result: { readonly kind: 'paid'; readonly transaction: Hex } | { readonly kind: 'unpaid' };
  /** Visible ASCII, for the auditor. */
  readonly evidence: string;
  readonly operator: string;
}

export type OperatorResolutionResult =
  | { readonly kind: 'recorded' }
  /** No settlement of that quote is open. */
  | { readonly kind: 'not_open' }
  /** Several payments of that quote are open. */
  | { readonly kind: 'ambiguous' }
  /** Its first settle request may still be under way. */
  | { readonly kind: 'too_young' }
  /** The chain says otherwise: the transaction does not carry the transfer. */
  | { readonly kind: 'contradicted' }
  | { readonly kind: 'chain_unavailable' }
  /** That transaction has paid for something else. */
  | { readonly kind: 'transfer_claimed' }
  /** Another outcome was recorded meanwhile. */
  | { readonly kind: 'superseded' };

/**
 * Records an operator's knowledge about an open settlement and what follows from it: paid → settled and enqueued, unpaid →
 * failed. If a chain is given, it must not contradict.
 */
export async function resolveSettlementByOperator(
  ledger: Pick<JobsContext, 'pool' | 'db' | 'lane'>,
  digest: Hex,
  resolution: OperatorResolution,
  chainOf: (network: string) => Chain | undefined,
): Promise<OperatorResolutionResult> {
  const quote = foldQuote((await readStream(ledger.pool, digest)).events);
  const open = quote.payments.filter(
    ({ status }) => status === 'settling' || status === 'settlement_unknown',
  );
  const [known, ...others] = open;
  if (!known) return { kind: 'not_open' };
  if (others.length > 0) return { kind: 'ambiguous' };
  const payment = paymentFromData(known.payment);
  const waiting = (await findUnsettled(ledger.db, digest)).find(
    (call) => call.payment === paymentKey(payment),
  );
  if (!waiting && !known.call) return { kind: 'not_open' };
  const isYoung = waiting !== undefined && waiting.age_secs * 1_000 < firstSettleMs;
  if (known.status === 'settling' && resolution.result.kind === 'unpaid' && isYoung)
    return { kind: 'too_young' };
  const checked = await checkOnChain(payment, resolution, chainOf(payment.network));
  if (checked.kind === 'contradicted' || checked.kind === 'chain_unavailable') return checked;
  const state = settlementState(known, waiting?.call_id);
  const recorded = await recordDecision(ledger, { digest, version: quote.version, state }, checked);
  return recorded.kind === 'stale' || recorded.kind === 'lease_lost' ? { kind: 'superseded' } : recorded;
}

/** The outcome to record, unless the chain contradicts it. */
async function checkOnChain(
  payment: SignedPayment,
  { result, evidence, operator }: OperatorResolution,
  chain: Chain | undefined,
): Promise<
  | Extract<SettlementOutcome, { kind: 'paid_by_operator' | 'unpaid_by_operator' }>
  | { readonly kind: 'contradicted' }
  | { readonly kind: 'chain_unavailable' }
> {
  const by = { evidence, operator };
  if (result.kind === 'unpaid') {
    const state = await chain?.isUsed(expectedTransfer(payment));
    if (state?.kind === 'unavailable') return { kind: 'chain_unavailable' };
    return state?.used ? { kind: 'contradicted' } : { kind: 'unpaid_by_operator', ...by };
  }
  const { transaction } = result;
  const found = await chain?.findSettlement(transaction, expectedTransfer(payment));
  if (!found || found.kind === 'paid') return { kind: 'paid_by_operator', transaction, proof: found, ...by };
  return found.kind === 'unavailable' ? { kind: 'chain_unavailable' } : { kind: 'contradicted' };
}

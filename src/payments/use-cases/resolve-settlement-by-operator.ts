import { expectedTransfer, paymentFromData, type SignedPayment } from '../rules/payment.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { foldQuote } from '../rules/quote-state.ts';
import { type SettlementOutcome, settlementState } from '../rules/settlement.ts';
import type { Chain } from '../peers/chain/chain.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { paymentKey } from '../store/claims.ts';
import { findUnsettled } from '../store/unsettled.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';
import { recordDecision } from './record-settlement.ts';

/** An operator's own knowledge about a settlement, with the evidence for it. */
export interface OperatorResolution {
  /** The transaction that paid, and which of its logs: needed if no chain can be asked. Or that there is none. */
  readonly result:
    | { readonly kind: 'paid'; readonly transaction: Hex; readonly logIndex?: number | undefined }
    | { readonly kind: 'unpaid' };
  /** Visible ASCII, for the auditor. */
  readonly evidence: string;
  readonly operator: string;
}

export type OperatorResolutionResult =
  | { readonly kind: 'recorded' }
  /** No settlement of that quote is open. */
  | { readonly kind: 'not_open' }
  /** Its authorization has not expired: a settle request under way may still move the money. */
  | { readonly kind: 'not_expired' }
  /** The chain says otherwise: the transaction does not carry the transfer. */
  | { readonly kind: 'contradicted' }
  | { readonly kind: 'chain_unavailable' }
  /** No chain shows which log of the transaction it was, and the operator did not say. */
  | { readonly kind: 'log_unknown' }
  /** That transaction has paid for something else. */
  | { readonly kind: 'transfer_claimed' }
  /** Another outcome was recorded meanwhile. */
  | { readonly kind: 'superseded' };

/**
 * Records an operator's knowledge about an open settlement and what follows from it: paid → settled and enqueued, unpaid →
 * failed. If a chain is given, it must not contradict.
 */
export async function resolveSettlementByOperator(
  ledger: Ledger,
  digest: Hex,
  resolution: OperatorResolution,
  chainOf: (network: string) => Chain | undefined,
): Promise<OperatorResolutionResult> {
  const { events, nowSecs } = await readStream(ledger.pool, digest);
  const quote = foldQuote(events);
  const known = quote.payment;
  if (known?.status !== 'settling' && known?.status !== 'settlement_unknown') return { kind: 'not_open' };
  const payment = paymentFromData(known.payment);
  if (resolution.result.kind === 'unpaid' && payment.validBefore >= BigInt(nowSecs))
    return { kind: 'not_expired' };
  const waiting = (await findUnsettled(ledger.db, digest)).find(
    (call) => call.payment === paymentKey(payment),
  );
  if (!waiting && !known.call) return { kind: 'not_open' };
  const checked = await checkOnChain(payment, resolution, chainOf(payment.network));
  if (checked.kind !== 'paid_by_operator' && checked.kind !== 'unpaid_by_operator') return checked;
  const held = waiting && { callId: waiting.call_id, attempt: waiting.attempt };
  const state = settlementState(known, held);
  const recorded = await recordDecision(ledger, { digest, version: quote.version, state }, checked);
  // any event moves the stream, such as one that says that the settlement is overdue
  if (recorded.kind === 'stale') return resolveSettlementByOperator(ledger, digest, resolution, chainOf);
  return recorded.kind === 'lease_lost' ? { kind: 'superseded' } : recorded;
}

/** How long before its end a payment may have landed. */
const searchedSecs = 86_400;

/** The outcome to record, unless the chain contradicts it. */
async function checkOnChain(
  payment: SignedPayment,
  { result, evidence, operator }: OperatorResolution,
  chain: Chain | undefined,
): Promise<
  | Extract<SettlementOutcome, { kind: 'paid_by_operator' | 'unpaid_by_operator' }>
  | { readonly kind: 'contradicted' | 'chain_unavailable' | 'not_expired' | 'log_unknown' }
> {
  const by = { evidence, operator };
  if (result.kind === 'unpaid') {
    if (!chain) return { kind: 'unpaid_by_operator', ...by };
    const latest = await chain.latestBlock();
    if (latest.kind === 'unavailable') return { kind: 'chain_unavailable' };
    // a block is what uses an authorization, so its time counts as well
    if (payment.validBefore > BigInt(latest.block.timestampSecs)) return { kind: 'not_expired' };
    const state = await chain.isUsed(expectedTransfer(payment));
    if (state.kind === 'unavailable') return { kind: 'chain_unavailable' };
    if (!state.used) return { kind: 'unpaid_by_operator', ...by };
    // used for something else, perhaps long before: only the transfer itself contradicts the operator
    const found = await chain.findAuthorization(
      expectedTransfer(payment),
      Number(payment.validBefore) - searchedSecs,
    );
    if (found.kind === 'unavailable') return { kind: 'chain_unavailable' };
    return found.kind === 'paid' ? { kind: 'contradicted' } : { kind: 'unpaid_by_operator', ...by };
  }
  const { transaction, logIndex } = result;
  if (!chain)
    return logIndex === undefined
      ? { kind: 'log_unknown' }
      : { kind: 'paid_by_operator', transaction, transfer: { logIndex }, ...by };
  const found = await chain.findSettlement(transaction, expectedTransfer(payment));
  if (found.kind === 'unavailable') return { kind: 'chain_unavailable' };
  // of several that it may be, the operator names one
  if (found.kind === 'ambiguous' && logIndex === undefined) return { kind: 'log_unknown' };
  const shown = found.kind === 'ambiguous' ? found.transfers : found.kind === 'paid' ? [found] : [];
  const transfer = shown.find((one) => logIndex === undefined || logIndex === one.logIndex);
  if (found.kind === 'absent' || !transfer) return { kind: 'contradicted' };
  const { blockNumber, blockHash } = found;
  return {
    kind: 'paid_by_operator',
    transaction,
    transfer: { ...transfer, blockNumber, blockHash },
    ...by,
  };
}

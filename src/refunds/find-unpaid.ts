import type pg from 'pg';
import type { RefundBatch } from '../domain/payments/refund-batch.ts';
import { expectedTransfer, paymentFromData } from '../domain/payments/payment.ts';
import { foldQuote, paidPayment, type PaymentState } from '../domain/payments/quote-state.ts';
import type { Hex } from '../domain/values/primitives.ts';
import type { Chain } from '../peers/chain/chain.ts';
import type { SettlementAnswer } from '../peers/chain/schemes/scheme.ts';
import { readStream } from '../store/streams.ts';

export type PaidOnChain =
  /** `unpaid`: the quotes of refunds whose payment the chain does not show. */
  | { readonly kind: 'asked'; readonly unpaid: readonly string[] }
  | { readonly kind: 'unavailable'; readonly cause: string };

/**
 * Asks a chain whether it shows the payment of each refund, in the transaction that the events name. Who can append to the ledger can
 * record a payment that was never made, and its dead letter: events that are legal, signed by that person, and sealed like any other.
 */
export async function findUnpaid(
  pool: pg.Pool,
  { refunds }: RefundBatch,
  chain: Pick<Chain, 'findSettlement'>,
): Promise<PaidOnChain> {
  const unpaid: string[] = [];
  for (const { quote_digest: digest, payment_nonce: nonce } of refunds) {
    const paid = paidPayment(foldQuote((await readStream(pool, digest)).events));
    const answer = paid?.payment.nonce === nonce ? await findPaid(paid, chain) : undefined;
    if (answer?.kind === 'unavailable') return { kind: 'unavailable', cause: answer.cause };
    if (answer?.kind !== 'paid') unpaid.push(digest);
  }
  return { kind: 'asked', unpaid };
}

/** What the chain says of a settled payment, in the transaction that the events name; undefined for one that is not settled. */
export async function findPaid(
  { payment, settled }: PaymentState,
  chain: Pick<Chain, 'findSettlement'>,
): Promise<SettlementAnswer | undefined> {
  return (
    settled && chain.findSettlement(settled.transaction as Hex, expectedTransfer(paymentFromData(payment)))
  );
}

import type { BatchedRefund, RefundBatch } from '../domain/payments/refund-batch.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { type Chains, rememberAnswers } from './final-transfers.ts';
import { recordRefund, type RefundAnswer, type RefundRefusal } from './record-refund.ts';

/** An operator's statement that transactions paid the refunds of a batch. */
export interface BatchRecordOrder {
  readonly batch: RefundBatch;
  readonly transactions: readonly Hex[];
  readonly operator: string;
}

export interface BatchedAnswer {
  readonly refund: BatchedRefund;
  readonly answer: RefundAnswer;
}

/** Refusals that say no more than that another transaction of the batch may have paid it. */
const notInThisOne: ReadonlySet<RefundRefusal> = new Set([
  'no_transfer',
  'other_address',
  'other_amount',
  'other_token',
  'transfer_claimed',
]);

/**
 * Records each refund of a batch that one of the transactions has paid. Each is checked as a refund by itself: what the file says of payee
 * and amount is believed only where ledger and chain say the same. Repeated it changes nothing more.
 */
export async function* recordBatch(
  ledger: Parameters<typeof recordRefund>[0],
  { batch, transactions, operator }: BatchRecordOrder,
  chains: Chains,
): AsyncGenerator<BatchedAnswer> {
  const readOnce = rememberAnswers(chains);
  for (const refund of batch.refunds) {
    const { quote_digest: quoteDigest, payment_nonce: paymentNonce, amount } = refund;
    const of = { quoteDigest, paymentNonce, amount: BigInt(amount), operator, isGoodwill: false };
    let answer: RefundAnswer = { kind: 'refused', code: 'no_transfer' };
    for (const transaction of transactions) {
      answer = await recordRefund(ledger, { ...of, transaction }, readOnce);
      if (answer.kind !== 'refused' || !notInThisOne.has(answer.code)) break;
    }
    yield { refund, answer };
  }
}

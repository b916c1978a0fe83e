import { foldQuote } from '../domain/payments/quote-state.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { listStartedRefunds } from '../store/refunds.ts';
import { readStream } from '../store/streams.ts';
import { endRefund } from './end-refund.ts';
import { type Chains, rememberAnswers } from './final-transfers.ts';
import { recordRefund, type RefundOrder } from './record-refund.ts';
import type { Ledger } from './send-refund.ts';

/** Looked at in one step. */
const mostAtOnce = 100;

/** How many steps were made: each begins where the one before has ended, so that refunds which wait for people delay no others. */
export interface FollowedSteps {
  count: number;
}

/**
 * Ends the started refunds of which the chain shows the end: records what a wallet has sent, or what its nonce was spent by, once it is final,
 * and gives up what cannot land any more, in the name of the operator who started each. Where only an operator can know, it changes nothing.
 */
export async function followRefunds(
  ledger: Ledger,
  chains: Chains,
  steps: FollowedSteps = { count: 0 },
): Promise<void> {
  const once = rememberAnswers(chains);
  const started = await listStartedRefunds(ledger.pool);
  const first = (steps.count++ * mostAtOnce) % Math.max(1, started.length);
  const turned = [...started.slice(first), ...started.slice(0, first)];
  for (const { stream } of turned.slice(0, mostAtOnce)) {
    const { payment: known } = foldQuote((await readStream(ledger.pool, stream)).events);
    if (!known?.refunding) continue;
    const { operator, transaction, sender, senderNonce } = known.refunding;
    const by = { quoteDigest: stream as Hex, paymentNonce: known.payment.nonce as Hex, operator };
    const record = (what: RefundOrder) => recordRefund(ledger, what, once);
    const order = { ...by, isGoodwill: false };
    const isRecorded =
      transaction !== undefined &&
      (await record({ ...order, transaction: transaction as Hex })).kind !== 'refused';
    if (isRecorded) continue;
    const ended = await endRefund(ledger, by, once);
    if (ended.kind !== 'refused' || ended.code !== 'look_alike') continue;
    // a wallet sends a transaction again for a higher fee, under the same nonce
    const other = ended.detail as Hex;
    const signed = await once.get(known.payment.network)?.readSignedBy(other);
    const isSame =
      signed?.kind === 'answer' && signed.value?.sender === sender && signed.value?.nonce === senderNonce;
    if (isSame) await record({ ...order, transaction: other });
  }
}

import type pg from 'pg';
import { decodeLeaf, type LedgerEvent } from '../domain/events/event.ts';
import { foldQuote, paidPayment, type PaymentState } from '../domain/payments/quote-state.ts';
import { refundReason, remainingAtoms } from '../domain/payments/refund.ts';
import { type BatchedRefund, transferCall } from '../domain/payments/refund-batch.ts';
import {
  foldSending,
  refundId,
  type RefundSending,
  refundStream,
} from '../domain/payments/refund-sending.ts';
import type { Caip2, Hex } from '../domain/values/primitives.ts';
import { findChangedEvents, isAsSealed } from '../log/changed-events.ts';
import type { Lane } from '../store/lane.ts';
import { readStreamsUpTo } from '../store/projection.ts';
import { readStream, readStreamLeaves } from '../store/streams.ts';
import { findPaid } from './find-unpaid.ts';
import { type Chains, readMined, type Refused, refused } from './final-transfers.ts';
import { recordRefund, type RefundAnswer } from './record-refund.ts';

interface Ledger {
  readonly pool: pg.Pool;
  readonly lane: Lane;
}

/** One settled payment of a quote. */
export interface RefundOf {
  readonly quoteDigest: Hex;
  readonly paymentNonce: Hex;
}

interface By extends RefundOf {
  readonly operator: string;
}

export type SendRefusal =
  /** No refund is due for it: there is no such payment, it was refunded, or its call may be delivered. */
  | 'not_due'
  /** Only the facilitator or an operator reported the payment; no block proves it. */
  | 'payment_unproven'
  /** The chain does not show the payment, whatever the events say. */
  | 'not_shown'
  /** Events are not those that the log has sealed: somebody has changed, moved or removed some. */
  | 'changed'
  /** Somebody else, or another page, is sending it. */
  | 'under_way'
  /** No operator has begun to send it. */
  | 'not_started'
  /** Its transaction is in a block, so money may have moved. */
  | 'landed'
  /** Its transaction waits for a block. */
  | 'pending'
  | 'chain_unavailable';

/** The transfer that a wallet is asked to send. */
export interface StartedRefund {
  readonly kind: 'started';
  readonly network: Caip2;
  readonly call: BatchedRefund['call'];
}

/**
 * Records that an operator is about to send what is left of a payment to its payer, before any wallet is asked. Payee and amount are
 * those of the payment's own events, and the chain is asked for the payment. While one is under way, no second one is started.
 */
export async function startRefund(
  ledger: Ledger,
  by: By,
  chains: Chains,
): Promise<StartedRefund | Refused<SendRefusal>> {
  const { quoteDigest, paymentNonce, operator } = by;
  const due = await findDue(ledger.pool, by);
  if (due.kind === 'refused') return due;
  // an earlier refund of it may be among the events that were removed
  if (!(await isAsSealed(ledger.pool))) return refused('changed');
  const { payment } = due.state;
  const chain = chains.get(payment.network);
  const paid = chain && (await findPaid(due.state, chain));
  if (!paid || paid.kind === 'unavailable') return refused('chain_unavailable', paid?.cause);
  if (paid.kind !== 'paid') return refused('not_shown');
  const { network, asset, symbol, decimals, payer } = payment;
  const amount = remainingAtoms(due.state);
  const { sending, version } = await readSending(ledger.pool, by);
  if (sending) return refused('under_way', sending.started.operator);
  const started: LedgerEvent = {
    type: 'operator_refund_started',
    data: {
      refund_id: refundId(quoteDigest, paymentNonce),
      quote_digest: quoteDigest,
      payment_nonce: paymentNonce,
      network,
      asset,
      symbol,
      decimals,
      amount: String(amount),
      refund_to: payer,
      operator,
    },
  };
  const stream = refundStream(quoteDigest, paymentNonce);
  const { outcome } = await ledger.lane.append({ stream, expect: version, events: [started] });
  if (outcome !== 'ok') return refused('under_way');
  // a command may have recorded a refund of it in between
  const still = await findDue(ledger.pool, by);
  if (still.kind === 'refused' || remainingAtoms(still.state) !== amount) {
    await appendEnd(ledger, by, version + 1, { as: 'not_sent', why: 'it was refunded meanwhile' });
    return refused('not_due');
  }
  return {
    kind: 'started',
    network: network as Caip2,
    call: transferCall(asset as Hex, payer as Hex, amount),
  };
}

/** Records the transaction that the wallet answered with. The same again changes nothing. */
export async function noteSentRefund(
  ledger: Ledger,
  { transaction, ...by }: By & { readonly transaction: Hex },
): Promise<{ readonly kind: 'recorded' } | Refused<SendRefusal>> {
  const { sending, version } = await readSending(ledger.pool, by);
  if (!sending) return refused('not_started');
  if (sending.transaction === transaction) return { kind: 'recorded' };
  const { outcome } = await ledger.lane.append({
    stream: refundStream(by.quoteDigest, by.paymentNonce),
    expect: version,
    events: [
      {
        type: 'operator_refund_sent',
        data: {
          refund_id: refundId(by.quoteDigest, by.paymentNonce),
          network: sending.started.network,
          transaction,
          operator: by.operator,
        },
      },
    ],
  });
  return outcome === 'ok' ? { kind: 'recorded' } : refused('under_way');
}

/** Records that the wallet did not send it, so that it may be sent again. Refused while its transaction, where one is known, may move money. */
export async function dropRefund(
  ledger: Ledger,
  { why, ...by }: By & { readonly why: string },
  chains: Chains,
): Promise<{ readonly kind: 'recorded' } | Refused<SendRefusal>> {
  const { sending, version } = await readSending(ledger.pool, by);
  if (!sending) return refused('not_started');
  if (sending.transaction !== undefined) {
    const mined = await readMined(chains, sending.started.network as Caip2, sending.transaction, []);
    if (mined.kind === 'mined') return refused('landed', sending.transaction);
    if (mined.code === 'not_final') return refused('pending', sending.transaction);
    if (mined.code !== 'transaction_failed' && mined.code !== 'transaction_unknown')
      return refused('chain_unavailable', mined.detail);
  }
  const outcome = await appendEnd(ledger, by, version, { as: 'not_sent', why });
  return outcome === 'ok' ? { kind: 'recorded' } : refused('under_way');
}

/** Records a refund by its transaction, as `recordRefund` does, and that it is not under way any more. */
export async function recordSentRefund(
  ledger: Ledger,
  { transaction, ...by }: By & { readonly transaction: Hex },
  chains: Chains,
): Promise<RefundAnswer> {
  const before = await readSending(ledger.pool, by);
  const amount = before.sending && { amount: BigInt(before.sending.started.amount) };
  const answer = await recordRefund(ledger, { ...by, ...amount, transaction, isGoodwill: false }, chains);
  if (answer.kind !== 'refused' && before.sending)
    await appendEnd(ledger, by, before.version, { as: 'recorded' });
  return answer;
}

async function appendEnd(
  { lane }: Ledger,
  { quoteDigest, paymentNonce, operator }: By,
  expect: number,
  end: { readonly as: 'recorded' | 'not_sent'; readonly why?: string },
) {
  const { outcome } = await lane.append({
    stream: refundStream(quoteDigest, paymentNonce),
    expect,
    events: [
      {
        type: 'operator_refund_ended',
        data: { refund_id: refundId(quoteDigest, paymentNonce), ...end, operator },
      },
    ],
  });
  return outcome;
}

/** The refund of a payment that is under way, and the version of its stream. */
export async function readSending(
  pool: pg.Pool,
  { quoteDigest, paymentNonce }: RefundOf,
): Promise<{ readonly sending: RefundSending | undefined; readonly version: number }> {
  const { events } = await readStream(pool, refundStream(quoteDigest, paymentNonce));
  return { sending: foldSending(events), version: events.length };
}

/** Those of these payments whose refund is under way, by the name of its stream. */
export async function readAllSending(
  pool: pg.Pool,
  payments: readonly { readonly quote_digest: string; readonly payment_nonce: string }[],
): Promise<ReadonlyMap<string, RefundSending>> {
  const names = payments.map((one) => refundStream(one.quote_digest, one.payment_nonce));
  const streams = await readStreamsUpTo(pool, names, Number.MAX_SAFE_INTEGER);
  return new Map(
    streams.flatMap((events): [string, RefundSending][] => {
      const sending = foldSending(events);
      return sending ? [[events[0]?.stream ?? '', sending]] : [];
    }),
  );
}

async function findDue(
  pool: pg.Pool,
  { quoteDigest, paymentNonce }: RefundOf,
): Promise<{ readonly kind: 'due'; readonly state: PaymentState } | Refused<SendRefusal>> {
  const leaves = await readStreamLeaves(pool, quoteDigest);
  const quote = foldQuote(leaves.map(({ leaf }) => decodeLeaf(leaf)));
  const state = paidPayment(quote);
  if (state?.payment.nonce !== paymentNonce || refundReason(state) === undefined) return refused('not_due');
  if (!state.settled?.proof) return refused('payment_unproven');
  const changed = await findChangedEvents(pool, new Map(leaves.map(({ seq, leaf }) => [seq, leaf])));
  return changed.length > 0 ? refused('changed') : { kind: 'due', state };
}

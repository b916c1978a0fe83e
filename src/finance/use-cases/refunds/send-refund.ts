import type pg from 'pg';
import { decodeLeaf } from '../../../ledger/rules/event.ts';
import { grant, type Wish, type WishRefusal } from '../../../payments/rules/deliver-or-refund.ts';
import { expectedTransfer, paymentFromData } from '../../../payments/rules/payment.ts';
import { foldQuote, paidPayment, type PaymentState } from '../../../payments/rules/quote-state.ts';
import { refundReason, remainingAtoms } from '../../../payments/rules/refund.ts';
import { type BatchedRefund, transferCall } from '../../rules/refund-batch.ts';
import type { Address, Caip2, Hex } from '../../../base/values/primitives.ts';
import { findChangedEvents, isAsSealed } from '../../../audit/use-cases/log/changed-events.ts';
import type { NoteVerifier } from '../../../base/values/log/checkpoint.ts';
import { type Attested, isWholeStream, readAttested } from '../attestations/attested.ts';
import type { Chain } from '../../../payments/peers/chain/chain.ts';
import { readStream, readStreamLeaves } from '../../../ledger/store/streams.ts';
import { type Chains, type Refused, refused, requireFinal, tryAgain } from './final-transfers.ts';
import type { LedgerWriter } from '../../../ledger/store/ledger.ts';

/** One settled payment of a quote. */
export interface RefundOf {
  readonly quoteDigest: Hex;
  readonly paymentNonce: Hex;
}

export interface By extends RefundOf {
  readonly operator: string;
}

/** The details of sending that are known before a refund is sent. */
export interface SendOrder extends By {
  /** Whose transaction it will be: an account with a key, or a Safe. */
  readonly sender?: Address | undefined;
  /** The only nonce of the sender under which it will be sent. */
  readonly senderNonce?: number | undefined;
  /** Why it is refunded, where only an operator's evidence says that it was paid. */
  readonly evidence?: string | undefined;
}

export type SendRefusal =
  /** No refund is due for it: there is no such payment, it was refunded, or its call may be delivered. */
  | 'not_due'
  /** No block proves the payment: a facilitator alone reported it, or an operator, and the order has no reason. */
  | 'payment_unproven'
  /** A reorg may still take the payment back. */
  | 'payment_not_final'
  /** The chain does not show the payment, whatever the events say. */
  | 'not_shown'
  /** Events are not those that the log has sealed: somebody has changed, moved or removed some. */
  | 'changed'
  /** Somebody else, or another page, is sending it. */
  | 'under_way'
  /** No operator has begun to send it. */
  | 'not_started'
  /** Something else was recorded of the payment at the same moment. */
  | 'superseded'
  | 'chain_unavailable';

/** The transfer that a wallet is asked to send. */
export interface StartedRefund {
  readonly kind: 'started';
  readonly network: Caip2;
  readonly call: BatchedRefund['call'];
}

/** A refund that may be started, at the version of its payment's stream that was looked at. */
export interface DueRefund {
  readonly kind: 'due';
  readonly of: RefundOf;
  readonly state: PaymentState;
  readonly version: number;
  /** The last final block. */
  readonly sinceBlock: bigint;
}

/**
 * Before any wallet is asked, records that an operator will send the rest of a payment to its payer. Payee and amount are
 * those of the payment's own events, and the chain is asked whether the payment is in a final block. While one is under way, no second one is
 * started, and the payment's call is not delivered.
 */
export async function startRefund(
  ledger: LedgerWriter,
  order: SendOrder,
  chains: Chains,
  verifier?: NoteVerifier,
): Promise<StartedRefund | Refused<SendRefusal>> {
  const attested = verifier && (await readAttested(ledger.pool, verifier));
  const since = attested?.kind === 'attested' ? attested.since : undefined;
  // an earlier refund of it may be among the events that were removed
  if (!(await isAsSealed(ledger.pool, since))) return refused('changed');
  return tryAgain(async () => {
    const due = await findDue(ledger.pool, order, chains, since);
    return due.kind === 'refused' ? due : startDue(ledger, due, order);
  });
}

/** Starts a refund that `findDue` has found; `superseded` where anything was recorded of its payment since. */
export async function startDue(
  { lane }: LedgerWriter,
  { of, state, version, sinceBlock }: DueRefund,
  { operator, sender, senderNonce, evidence }: Omit<SendOrder, keyof RefundOf>,
): Promise<StartedRefund | Refused<SendRefusal>> {
  const data: Extract<Wish, { kind: 'start_refund' }>['data'] = {
    since_block: String(sinceBlock),
    ...(sender !== undefined && { sender }),
    ...(sender !== undefined && senderNonce !== undefined && { sender_nonce: senderNonce }),
    ...(!state.settled?.proof && evidence !== undefined && { evidence }),
    operator,
  };
  const granted = grant(state, { kind: 'start_refund', data });
  if (granted.kind === 'refused') return sendRefusal(granted.why);
  const { outcome } = await lane.append({
    stream: of.quoteDigest,
    expect: version,
    events: granted.events,
  });
  if (outcome !== 'ok') return refused('superseded');
  const { network, asset, payer } = state.payment;
  const call = transferCall(asset as Hex, payer as Hex, remainingAtoms(state));
  return { kind: 'started', network: network as Caip2, call };
}

/** The refund of a payment, if it is due, not under way, and of a payment that cannot be taken back any more. */
export async function findDue(
  pool: pg.Pool,
  { quoteDigest, paymentNonce, evidence }: RefundOf & Pick<SendOrder, 'evidence'>,
  chains: Chains,
  since?: Attested,
): Promise<DueRefund | Refused<SendRefusal>> {
  const leaves = await readStreamLeaves(pool, quoteDigest);
  const events = leaves.map(({ leaf }) => decodeLeaf(leaf));
  const quote = foldQuote(events);
  const state = paidPayment(quote);
  if (state?.payment.nonce !== paymentNonce || refundReason(state) === undefined) return refused('not_due');
  if (state.refunding) return refused('under_way', state.refunding.operator);
  const changed = await findChangedEvents(pool, new Map(leaves.map(({ seq, leaf }) => [seq, leaf])));
  if (changed.length > 0 || !isWholeStream(events, since)) return refused('changed');
  const network = state.payment.network as Caip2;
  const final = await chains.get(network)?.finalizedBlock();
  if (final?.kind !== 'answer') return refused('chain_unavailable', final?.cause);
  const doubt = await doubtOf(state, evidence, chains);
  if (doubt) return doubt;
  const of = { quoteDigest, paymentNonce };
  return { kind: 'due', of, state, version: quote.version, sinceBlock: final.block.number };
}

/** Why the chain does not vouch for the payment; undefined if it does, or an operator does and says why. */
async function doubtOf(
  { payment, settled }: PaymentState,
  evidence: string | undefined,
  chains: Chains,
): Promise<Refused<SendRefusal> | undefined> {
  const network = payment.network as Caip2;
  if (!settled?.proof)
    return settled?.evidence === 'operator' && evidence !== undefined
      ? undefined
      : refused('payment_unproven');
  // who can append to the ledger can record a payment that was never made: events that are legal, and sealed like any other
  const paid = await findPaid(settled.transaction as Hex, payment, chains.get(network));
  if (paid?.kind !== 'paid')
    return paid && paid.kind !== 'unavailable'
      ? refused('not_shown')
      : refused('chain_unavailable', paid?.cause);
  const early = await requireFinal(chains, network, paid);
  if (early)
    return refused(early.code === 'not_final' ? 'payment_not_final' : 'chain_unavailable', early.detail);
  return undefined;
}

function findPaid(transaction: Hex, payment: PaymentState['payment'], chain: Chain | undefined) {
  return chain?.findSettlement(transaction, expectedTransfer(paymentFromData(payment)));
}

/** Records the transaction that the wallet answered with, and its nonce if the node knows it. The same again changes nothing. */
export async function noteSentRefund(
  ledger: LedgerWriter,
  { transaction, ...by }: By & { readonly transaction: Hex },
  chains: Chains,
): Promise<{ readonly kind: 'recorded' } | Refused<SendRefusal>> {
  return tryAgain(async () => {
    const { state, version } = await readRefunding(ledger.pool, by);
    const signed = state && (await chains.get(state.payment.network)?.readSignedBy(transaction));
    const named = signed?.kind === 'answer' ? signed.value : undefined;
    const data = {
      transaction,
      ...(named && { sender: named.sender, sender_nonce: named.nonce }),
      operator: by.operator,
    };
    const granted = state && grant(state, { kind: 'note_sent', data });
    if (!granted) return refused('not_started');
    if (granted.kind === 'refused') return sendRefusal(granted.why);
    const { events } = granted;
    if (events.length === 0) return { kind: 'recorded' };
    const { outcome } = await ledger.lane.append({ stream: by.quoteDigest, expect: version, events });
    return outcome === 'ok' ? { kind: 'recorded' } : refused('superseded');
  });
}

/** A payment with a refund under way, if there is one, and the version of its stream. */
export async function readRefunding(
  pool: pg.Pool,
  { quoteDigest, paymentNonce }: RefundOf,
): Promise<{ readonly state: PaymentState | undefined; readonly version: number }> {
  const { payment, version } = foldQuote((await readStream(pool, quoteDigest)).events);
  const isNamed = payment?.payment.nonce === paymentNonce && payment.refunding !== undefined;
  return { state: isNamed ? payment : undefined, version };
}

function sendRefusal(why: WishRefusal): Refused<SendRefusal> {
  switch (why.kind) {
    case 'refund_under_way':
      return refused('under_way', why.refunding.operator);
    case 'not_started':
      return refused('not_started');
    case 'said_before':
    case 'unpaid':
    case 'refunded':
    case 'call_open':
    case 'delivered':
    case 'requested_before':
    case 'not_requested':
    case 'refund_due':
      return refused('not_due');
  }
}

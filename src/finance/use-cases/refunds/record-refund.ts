import { parseUnits } from 'viem/utils';
import type pg from 'pg';
import type { EventData, RecordedEvent } from '../../../ledger/rules/event.ts';
import { grant, type WishRefusal } from '../../../payments/rules/deliver-or-refund.ts';
import {
  expectedTransfer,
  ofPayment,
  paymentFromData,
  type SignedPayment,
} from '../../../payments/rules/payment.ts';
import type { Hex } from '../../../base/values/primitives.ts';
import type { BatchedRefund, RefundBatch } from '../../rules/refund-batch.ts';
import { remainingAtoms } from '../../../payments/rules/refund.ts';
import {
  foldQuote,
  type PaymentState,
  type QuoteState,
  paidAmount,
} from '../../../payments/rules/quote-state.ts';
import { placeData } from '../../../payments/rules/chain-transfer.ts';
import type { Transfer } from '../../../payments/peers/chain/chain.ts';
import { refundClaim } from '../../../payments/store/recorded-claims.ts';
import { listPayees } from '../../../payments/store/refunds.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import { readTransferHolders } from '../../../payments/store/claims.ts';
import {
  type Chains,
  type MinedTransfers,
  type NoTransfers,
  readMined,
  recordTransferCost,
  type Refused,
  refused,
  rememberAnswers,
  requireFinal,
  type TransferCost,
  tryAgain,
} from './final-transfers.ts';
import type { LedgerWriter } from '../../../ledger/store/ledger.ts';

/** An operator's statement that a transaction refunded a payment, or a part of it. */
export interface RefundOrder {
  readonly quoteDigest: Hex;
  /** The nonce of the payment: needed if several payments of the quote are settled. */
  readonly paymentNonce: Hex | undefined;
  readonly transaction: Hex;
  /** How much it returned, if that is not all that is left of the payment: in atoms, or as `1.50` of a token. */
  readonly amount?: bigint | { readonly decimal: string; readonly symbol: string } | undefined;
  /** Where it went, if not to the payer, and why. */
  readonly elsewhere?: { readonly to: Hex; readonly evidence: string } | undefined;
  readonly operator: string;
  /** Refund although the call was delivered or may still be. */
  readonly isGoodwill: boolean;
}

export type RefundRefusal =
  | NoTransfers
  | 'quote_unknown'
  | 'payment_unknown'
  | 'not_paid'
  /** The chain does not show the payment that the facilitator reported, or its block was replaced. */
  | 'payment_unproven'
  /** The whole payment is refunded by other transactions. */
  | 'refunded_before'
  | 'delivered'
  /** The call may still be delivered. */
  | 'call_open'
  /** Another refund of it is started, of another amount or to another address. */
  | 'refund_under_way'
  /** The payment is in another token than the amount, or one with fewer decimals. */
  | 'amount_of_other_token'
  /** More than is left of the payment. */
  | 'too_much'
  /** The other address is a payee of the operator. */
  | 'to_payee'
  | 'other_address'
  | 'other_amount'
  | 'other_token'
  | 'no_transfer'
  /** The transfer is from an address to itself. */
  | 'moved_nothing'
  /** The transfer is older than the payment. */
  | 'before_payment'
  /** The transfer is a payment, a sweep or another refund. */
  | 'transfer_claimed'
  /** The refund was started for a nonce of a sender, and this is another transaction. */
  | 'other_sender'
  | 'superseded';

export type RefundAnswer =
  /** `repeated`: the same refund was recorded before; nothing was recorded now. */
  | {
      readonly kind: 'recorded' | 'repeated';
      readonly payment: SignedPayment;
      /** The amount that the transfer returned, its recipient, and the rest of the payment, in atoms. */
      readonly amount: bigint;
      readonly to: string;
      readonly remaining: bigint;
      /** What its transaction cost. */
      readonly cost: TransferCost;
    }
  | Refused<RefundRefusal>;

function atomsIn(
  { decimal, symbol }: { readonly decimal: string; readonly symbol: string },
  payment: SignedPayment,
): bigint | 'other_token' {
  const places = decimal.split('.')[1]?.length ?? 0;
  if (symbol !== payment.symbol || places > payment.decimals) return 'other_token';
  return parseUnits(decimal, payment.decimals);
}

/**
 * Records a refund: a final transaction moved the rest of a payment, or the part that the order names, in its token, from any
 * address to its payer or where the order says. A transfer counts once, and no more is refunded than was paid, also with concurrent
 * commands.
 */
export async function recordRefund(
  ledger: LedgerWriter,
  order: RefundOrder,
  chains: Chains,
): Promise<RefundAnswer> {
  return tryAgain(() => tryRefund(ledger, order, chains));
}

async function tryRefund(ledger: LedgerWriter, order: RefundOrder, chains: Chains): Promise<RefundAnswer> {
  const { events } = await readStream(ledger.pool, order.quoteDigest);
  const quote = foldQuote(events);
  const known = choosePayment(quote, order.paymentNonce);
  if ('kind' in known) return known;
  const payment = paymentFromData(known.payment);
  const remaining = remainingAtoms(known);
  const to = order.elsewhere?.to ?? payment.payer;
  const part = typeof order.amount === 'object' ? atomsIn(order.amount, payment) : order.amount;
  if (part === 'other_token')
    return refused('amount_of_other_token', `${payment.symbol} has ${payment.decimals} decimals`);
  const amount = part ?? remaining;
  const earlier = known.refunds.find(
    (one) =>
      one.transaction === order.transaction &&
      (part === undefined || one.amount === amount) &&
      (!order.elsewhere || one.to === to),
  );
  const costOf = (from: string): Promise<TransferCost> => {
    const { network } = payment;
    const { transaction, operator } = order;
    return recordTransferCost(ledger, chains, { network, transaction, purpose: 'refund', operator }, from);
  };
  const repeated =
    earlier &&
    (async (): Promise<RefundAnswer> => {
      const cost = await costOf(senderOf(events, earlier.version));
      return { kind: 'repeated', payment, amount: earlier.amount, to: earlier.to, remaining, cost };
    });
  // another transfer of the same transaction may have returned an equal part
  if (repeated && (part === undefined || part > remaining)) return repeated();
  if (!known.isRefunded && (amount === 0n || amount > remaining))
    return refused('too_much', `${amount} atoms, and ${remaining} of ${paidAmount(known)} are left`);
  const wish = { kind: 'record_refund', amount, to, isGoodwill: order.isGoodwill } as const;
  const early = grant(known, { ...wish, shown: undefined });
  const impossible =
    early.kind === 'refused'
      ? refusalOf(early.why, known)
      : await checkAddress(ledger.pool, payment, order.elsewhere);
  if (impossible) return repeated ? repeated() : impossible;
  const mined = await readMined(chains, payment.network, order.transaction, [payment.asset]);
  if (mined.kind === 'refused') return mined;
  const holders = await readTransferHolders(ledger.pool, payment.network, order.transaction);
  const chosen = chooseTransfer(mined.transfers, { asset: payment.asset, to, amount }, holders);
  if (chosen.kind === 'refused') {
    if (repeated) return repeated();
    // another command has recorded this very refund meanwhile
    if (chosen.code === 'transfer_claimed' && chosen.detail?.includes(order.quoteDigest))
      return refused('superseded');
    return nameOtherToken(chains, order, payment, { to, otherwise: chosen });
  }
  const notYet =
    (await checkSender(chains, known, order.transaction, chosen.transfer)) ??
    (await requireFinal(chains, payment.network, mined)) ??
    (await checkPaidBefore(chains, known, payment, mined));
  if (notYet) return notYet;
  const refunded = refundedData(order, payment, mined, chosen.transfer);
  const granted = grant(known, { ...wish, shown: refunded });
  if (granted.kind === 'refused') return refusalOf(granted.why, known);
  const { outcome } = await ledger.lane.append({
    stream: order.quoteDigest,
    expect: quote.version,
    events: granted.events,
    claims: [refundClaim(refunded, payment.nonce)],
  });
  // another command claimed the transfer or refunded the payment: look again
  if (outcome !== 'ok') return refused('superseded');
  const cost = await costOf(refunded.refunded_from);
  return { kind: 'recorded', payment, amount, to, remaining: remaining - amount, cost };
}

/** Whose tokens a recorded refund moved. */
function senderOf(events: readonly RecordedEvent[], version: number): string {
  const event = events.find((one) => one.version === version);
  return event?.type === 'refunded' ? event.data.refunded_from : '';
}

/** The settled payment that the order names. */
function choosePayment(quote: QuoteState, nonce: Hex | undefined): PaymentState | Refused<RefundRefusal> {
  if (quote.version === 0) return refused('quote_unknown');
  const { payment } = quote;
  if (nonce !== undefined && payment?.payment.nonce !== nonce) return refused('payment_unknown', nonce);
  // one that was started may have been sent before its payment was taken back
  if (payment?.status === 'settled' || payment?.refunding) return payment;
  return refused('not_paid', payment?.status ?? 'no payment was started');
}

function refusalOf(why: WishRefusal, { call, refunds }: PaymentState): Refused<RefundRefusal> {
  switch (why.kind) {
    case 'refund_under_way':
      return refused(
        'refund_under_way',
        `${why.refunding.amount} atoms to ${why.refunding.to}, by ${why.refunding.operator}`,
      );
    case 'refunded':
      return refused('refunded_before', refunds.map(({ transaction }) => transaction).join(' '));
    case 'delivered':
      return refused('delivered', `call ${call?.callId}`);
    case 'call_open':
      return refused('call_open', call ? `call ${call.callId}` : 'its payer has asked for delivery');
    case 'unpaid':
    case 'not_started':
    case 'said_before':
    case 'requested_before':
    case 'not_requested':
    case 'refund_due':
      return refused('not_paid');
  }
}

/** Money that goes to a payee again has not left the operator. */
async function checkAddress(
  pool: pg.Pool,
  { network, payer }: SignedPayment,
  elsewhere: RefundOrder['elsewhere'],
): Promise<Refused<RefundRefusal> | undefined> {
  if (!elsewhere || elsewhere.to === payer) return undefined;
  const payees = await listPayees(pool, network);
  return payees.some(({ pay_to: payTo }) => payTo === elsewhere.to)
    ? refused('to_payee', elsewhere.to)
    : undefined;
}

interface WantedTransfer {
  readonly asset: string;
  readonly to: string;
  readonly amount: bigint;
}

/** A transfer that moved exactly this and that nothing else has claimed; otherwise a refusal with the closest transfer. */
function chooseTransfer(
  all: readonly Transfer[],
  { asset, to: wanted, amount }: WantedTransfer,
  holders: (logIndex: number) => string | undefined,
): { readonly kind: 'chosen'; readonly transfer: Transfer } | Refused<RefundRefusal> {
  const exact = all.filter((one) => one.asset === asset && one.to === wanted && one.value === amount);
  const moving = exact.filter(({ from }) => from !== wanted);
  const transfer = moving.find(({ logIndex }) => holders(logIndex) === undefined);
  if (transfer) return { kind: 'chosen', transfer };
  if (moving.length > 0)
    return refused('transfer_claimed', moving.map(({ logIndex }) => holders(logIndex)).join(' '));
  if (exact.length > 0) return refused('moved_nothing');
  const toThere = all.find(({ to, from }) => to === wanted && from !== wanted);
  if (toThere) return refused('other_amount', `${toThere.value} atoms instead of ${amount}`);
  const elsewhere = all.find((one) => one.asset === asset);
  return elsewhere
    ? refused('other_address', `${elsewhere.to} instead of ${wanted}`)
    : refused('no_transfer', `of ${asset} to ${wanted}`);
}

/**
 * A refund that was started for a nonce is sent under no other: an equal transfer may be another refund's, and its own could land after it.
 * The transaction of a Safe is signed by any account, and moves the Safe's tokens.
 */
async function checkSender(
  chains: Chains,
  { payment: { network }, refunding }: PaymentState,
  transaction: Hex,
  transfer: Transfer,
): Promise<Refused<RefundRefusal> | undefined> {
  const { sender, senderNonce } = refunding ?? {};
  if (sender === undefined || senderNonce === undefined) return undefined;
  const signed = await chains.get(network)?.readSignedBy(transaction);
  if (signed?.kind !== 'answer') return refused('chain_unavailable', signed?.cause ?? network);
  const by = signed.value;
  const isOwn = by?.sender === sender ? by.nonce === senderNonce : transfer.from === sender;
  return isOwn ? undefined : refused('other_sender', `nonce ${senderNonce} of ${sender}`);
}

/** If nothing of the payment's token went there, the transaction may have moved another token. */
async function nameOtherToken(
  chains: Chains,
  { transaction }: RefundOrder,
  { network, asset }: SignedPayment,
  { to, otherwise }: { readonly to: string; readonly otherwise: Refused<RefundRefusal> },
): Promise<Refused<RefundRefusal>> {
  if (otherwise.code !== 'other_address' && otherwise.code !== 'no_transfer') return otherwise;
  const mined = await readMined(chains, network, transaction);
  const moved = mined.kind === 'mined' ? mined.transfers : [];
  const other = moved.find((one) => one.to === to && one.from !== to);
  return other ? refused('other_token', `${other.asset} instead of ${asset}`) : otherwise;
}

/** A refund requires that the payment landed, and before the refund. */
async function checkPaidBefore(
  chains: Chains,
  { settled }: PaymentState,
  payment: SignedPayment,
  { blockNumber }: MinedTransfers,
): Promise<Refused<RefundRefusal> | undefined> {
  const paidIn = settled?.proof ?? (await findClaimedTransfer(chains, settled, payment));
  if (paidIn === undefined || 'code' in paidIn) return paidIn;
  if (paidIn.blockNumber > blockNumber)
    return refused('before_payment', `paid in block ${paidIn.blockNumber}, transferred in ${blockNumber}`);
  // a payment that is taken back may get its call again, which excludes the refund
  const early = await requireFinal(chains, payment.network, paidIn);
  return early?.code === 'not_final' ? refused('payment_unproven', early.detail) : early;
}

/** The place of a payment that only the facilitator reported. Undefined if an operator resolved it: that decision is final. */
async function findClaimedTransfer(
  chains: Chains,
  settled: PaymentState['settled'],
  payment: SignedPayment,
): Promise<Parameters<typeof requireFinal>[2] | Refused<RefundRefusal> | undefined> {
  if (settled?.evidence !== 'facilitator') return undefined;
  const expected = expectedTransfer(payment);
  const found = await chains.get(payment.network)?.findSettlement(settled.transaction as Hex, expected);
  if (found?.kind === 'unavailable') return refused('chain_unavailable', found.cause);
  return found?.kind === 'paid' ? found : refused('payment_unproven', settled.transaction);
}

function refundedData(
  { transaction, operator, elsewhere }: RefundOrder,
  payment: SignedPayment,
  block: MinedTransfers,
  transfer: Transfer,
): EventData<'refunded'> {
  return {
    ...ofPayment(payment),
    amount: String(transfer.value),
    refunded_from: transfer.from,
    refunded_to: transfer.to,
    ...(elsewhere && transfer.to !== payment.payer && { evidence: elsewhere.evidence }),
    transaction,
    ...placeData({ ...block, ...transfer }),
    operator,
  };
}

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

/** Refusals that only mean that another transaction of the batch may have paid the refund. */
const notInThisOne: ReadonlySet<RefundRefusal> = new Set([
  'no_transfer',
  'other_address',
  'other_amount',
  'other_token',
  'transfer_claimed',
  'other_sender',
]);

/**
 * Records each refund of a batch that one of the transactions has paid. Each is checked like a single refund: the file's payee
 * and amount count only where ledger and chain say the same. Repeated it changes nothing more.
 */
export async function* recordBatch(
  ledger: LedgerWriter,
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

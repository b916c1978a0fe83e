import type pg from 'pg';
import type { EventData } from '../domain/events/event.ts';
import {
  expectedTransfer,
  ofPayment,
  paymentFromData,
  type SignedPayment,
} from '../domain/payments/payment.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { foldQuote, type PaymentState, type QuoteState } from '../domain/payments/quote-state.ts';
import { placeData } from '../domain/payments/transfer-place.ts';
import type { Transfer } from '../peers/chain/chain.ts';
import type { Lane } from '../store/lane.ts';
import { readStream, readTransferHolders, transferClaim } from '../store/streams.ts';
import {
  type Chains,
  type MinedTransfers,
  type NoTransfers,
  readMined,
  type Refused,
  refused,
  requireFinal,
} from './final-transfers.ts';

/** An operator's statement that a transaction refunded a payment. */
export interface RefundOrder {
  readonly quoteDigest: Hex;
  /** The nonce of the payment: needed where several payments of the quote are settled. */
  readonly paymentNonce: Hex | undefined;
  readonly transaction: Hex;
  readonly operator: string;
  /** Refund although the call was delivered or may still be. */
  readonly isGoodwill: boolean;
}

export type RefundRefusal =
  | NoTransfers
  | 'quote_unknown'
  | 'payment_unknown'
  | 'payment_ambiguous'
  | 'not_paid'
  /** Only the facilitator reported the payment; the chain does not show it. */
  | 'payment_unproven'
  /** Another transaction is recorded as its refund. */
  | 'refunded_before'
  | 'delivered'
  /** The call may still be delivered. */
  | 'call_open'
  | 'other_address'
  | 'other_amount'
  | 'other_token'
  | 'no_transfer'
  /** The transfer is from the payer to the payer. */
  | 'moved_nothing'
  /** The transfer is older than the payment. */
  | 'before_payment'
  /** The transfer is a payment, a sweep or another refund. */
  | 'transfer_claimed'
  | 'superseded';

export type RefundAnswer =
  /** `repeated`: the same refund was recorded before; nothing was recorded now. */
  { readonly kind: 'recorded' | 'repeated'; readonly payment: SignedPayment } | Refused<RefundRefusal>;

interface Ledger {
  readonly pool: pg.Pool;
  readonly lane: Lane;
}

const maxTries = 5;

/**
 * Records a refund: a final transaction moved exactly the amount of a payment, in its token, from any address to its payer. A
 * transfer counts once, and a payment is refunded once, also with concurrent commands.
 */
export async function recordRefund(
  ledger: Ledger,
  order: RefundOrder,
  chains: Chains,
): Promise<RefundAnswer> {
  for (let tries = 0; tries < maxTries; tries++) {
    const answer = await tryRefund(ledger, order, chains);
    if (answer !== 'again') return answer;
  }
  return refused('superseded');
}

async function tryRefund(
  ledger: Ledger,
  order: RefundOrder,
  chains: Chains,
): Promise<RefundAnswer | 'again'> {
  const quote = foldQuote((await readStream(ledger.pool, order.quoteDigest)).events);
  const known = choosePayment(quote, order.paymentNonce);
  if ('kind' in known) return known;
  const payment = paymentFromData(known.payment);
  if (known.refunded) {
    const { transaction } = known.refunded;
    return transaction === order.transaction
      ? { kind: 'repeated', payment }
      : refused('refunded_before', transaction);
  }
  const openCall = checkCall(known, order.isGoodwill);
  if (openCall) return openCall;
  const mined = await readMined(chains, payment.network, order.transaction);
  if (mined.kind === 'refused') return mined;
  const chosen = chooseTransfers(mined.transfers, payment);
  if (chosen.kind === 'refused') return chosen;
  const notYet =
    (await requireFinal(chains, payment.network, mined)) ??
    (await checkPaidBefore(chains, known, payment, mined));
  if (notYet) return notYet;
  return appendRefund(ledger, order, { payment, version: quote.version, mined, transfers: chosen.transfers });
}

/** The settled payment that the order names. */
function choosePayment(quote: QuoteState, nonce: Hex | undefined): PaymentState | Refused<RefundRefusal> {
  if (quote.version === 0) return refused('quote_unknown');
  const named = quote.payments.filter(({ payment }) => nonce === undefined || payment.nonce === nonce);
  if (nonce !== undefined && named.length === 0) return refused('payment_unknown', nonce);
  const [settled, another] = named.filter(({ status }) => status === 'settled');
  if (!settled) return refused('not_paid', named.at(-1)?.status ?? 'no payment was started');
  if (!another) return settled;
  const nonces = named.filter(({ status }) => status === 'settled').map(({ payment }) => payment.nonce);
  return refused('payment_ambiguous', nonces.join(' '));
}

function checkCall(
  { call, recovered }: PaymentState,
  isGoodwill: boolean,
): Refused<RefundRefusal> | undefined {
  if (recovered?.redelivery && !call) return refused('call_open', 'its payer has asked for delivery');
  if (isGoodwill || !call || call.status === 'dead_lettered') return undefined;
  return refused(call.status === 'completed' ? 'delivered' : 'call_open', `call ${call.callId}`);
}

/** The transfers that refund exactly the payment; otherwise a refusal with the closest transfer. */
function chooseTransfers(
  all: readonly Transfer[],
  { asset, payer, amount }: SignedPayment,
): { readonly kind: 'chosen'; readonly transfers: readonly Transfer[] } | Refused<RefundRefusal> {
  const exact = all.filter((one) => one.asset === asset && one.to === payer && one.value === amount);
  const moving = exact.filter(({ from }) => from !== payer);
  if (moving.length > 0) return { kind: 'chosen', transfers: moving };
  if (exact.length > 0) return refused('moved_nothing');
  const toPayer = all.filter(({ to, from }) => to === payer && from !== payer);
  const ofAsset = toPayer.find((one) => one.asset === asset);
  if (ofAsset) return refused('other_amount', `${ofAsset.value} atoms instead of ${amount}`);
  const [other] = toPayer;
  if (other) return refused('other_token', `${other.asset} instead of ${asset}`);
  const elsewhere = all.find((one) => one.asset === asset);
  return elsewhere
    ? refused('other_address', `${elsewhere.to} instead of ${payer}`)
    : refused('no_transfer', `of ${asset} to ${payer}`);
}

/** A refund requires that the payment landed, and before the refund. */
async function checkPaidBefore(
  chains: Chains,
  { settled }: PaymentState,
  payment: SignedPayment,
  { blockNumber }: MinedTransfers,
): Promise<Refused<RefundRefusal> | undefined> {
  const paidIn = settled?.proof?.blockNumber ?? (await findClaimedTransfer(chains, settled, payment));
  if (paidIn === undefined || typeof paidIn === 'bigint')
    return paidIn !== undefined && paidIn > blockNumber
      ? refused('before_payment', `paid in block ${paidIn}, transferred in ${blockNumber}`)
      : undefined;
  return paidIn;
}

/** The block of a payment that only the facilitator reported. Undefined if an operator resolved it: that decision is final. */
async function findClaimedTransfer(
  chains: Chains,
  settled: PaymentState['settled'],
  payment: SignedPayment,
): Promise<bigint | Refused<RefundRefusal> | undefined> {
  if (settled?.evidence !== 'facilitator') return undefined;
  const expected = expectedTransfer(payment);
  const found = await chains.get(payment.network)?.findSettlement(settled.transaction as Hex, expected);
  if (found?.kind === 'unavailable') return refused('chain_unavailable', found.cause);
  return found?.kind === 'paid' ? found.blockNumber : refused('payment_unproven', settled.transaction);
}

interface CheckedRefund {
  readonly payment: SignedPayment;
  readonly version: number;
  readonly mined: MinedTransfers;
  /** Candidates: one transaction may refund several payments. */
  readonly transfers: readonly Transfer[];
}

async function appendRefund(
  { lane, pool }: Ledger,
  order: RefundOrder,
  { payment, version, mined, transfers }: CheckedRefund,
): Promise<RefundAnswer | 'again'> {
  const { network, nonce } = payment;
  for (const transfer of transfers) {
    const claim = transferClaim(network, order.transaction, transfer.logIndex, `refund:${nonce}`);
    const { outcome } = await lane.append({
      stream: order.quoteDigest,
      expect: version,
      events: [{ type: 'refunded', data: refundedData(order, payment, mined, transfer) }],
      claims: [claim],
    });
    if (outcome === 'ok') return { kind: 'recorded', payment };
    if (outcome !== 'lost') return 'again';
  }
  const holders = await readTransferHolders(pool, network, order.transaction);
  return refused('transfer_claimed', transfers.map(({ logIndex }) => holders(logIndex)).join(' '));
}

function refundedData(
  { transaction, operator }: RefundOrder,
  payment: SignedPayment,
  block: MinedTransfers,
  transfer: Transfer,
): EventData<'refunded'> {
  return {
    ...ofPayment(payment),
    amount: String(transfer.value),
    refunded_from: transfer.from,
    refunded_to: transfer.to,
    transaction,
    ...placeData({ ...block, ...transfer }),
    operator,
  };
}

import { refundedAtoms } from '../../../payments/rules/payment-progress.ts';
import { amountOf, type OutFact, type PaymentFact, type SpendFact } from './fact.ts';
import type { ItemFields } from './tally.ts';
import type { ChainTransfer } from '../../../payments/rules/chain-transfer.ts';

/** The fields of a payment's item that come from the ledger. */
export function paymentFields(payment: PaymentFact): ItemFields {
  return {
    of: 'payment',
    network: payment.network,
    asset: payment.asset,
    pay_to: payment.payTo,
    seq: payment.seq,
    quote_digest: payment.quoteDigest,
    payer: payment.payer,
    payment_nonce: payment.nonce,
    recorded_at: payment.settled?.at ?? payment.startedAt,
    ledger_amount: String(amountOf(payment)),
    ...(payment.refunds.length > 0 && { refunded_amount: String(refundedAtoms(payment)) }),
    ...(payment.transaction !== undefined && { transaction: payment.transaction }),
    ...(payment.settled?.proof && { block_number: String(payment.settled.proof.blockNumber) }),
  };
}

/** The same for a refund, a sweep or a recorded transfer. `payTo` is its payee: the source, unless the money came in. */
export function outFields(out: OutFact, payTo = out.payTo): ItemFields {
  return {
    of: out.of,
    network: out.network,
    asset: out.asset,
    pay_to: payTo,
    seq: out.seq,
    ...(out.quoteDigest !== undefined && { quote_digest: out.quoteDigest }),
    recorded_at: out.recordedAt,
    ledger_amount: String(out.amount),
    from: out.payTo,
    to: out.to,
    transaction: out.transaction,
    block_number: String(out.blockNumber),
    log_index: out.logIndex,
  };
}

/** The same for a spend that was paid out. */
export function spendFields(spend: SpendFact): ItemFields {
  return {
    of: 'spend',
    network: spend.network,
    pay_to: spend.operator,
    seq: spend.seq,
    recorded_at: spend.recordedAt,
    ledger_amount: String(spend.amount),
    ...(spend.transaction !== undefined && { transaction: spend.transaction }),
    from: spend.contract,
  };
}

/** The fields of a transfer that come from the chain. */
export function chainFields(transfer: ChainTransfer) {
  return {
    network: transfer.network,
    asset: transfer.asset,
    chain_amount: String(transfer.amount),
    transaction: transfer.transaction,
    block_number: String(transfer.blockNumber),
    log_index: transfer.logIndex,
  };
}

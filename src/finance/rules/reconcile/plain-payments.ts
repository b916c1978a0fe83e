import { HashedNumbers } from '../../../base/values/hashed-numbers.ts';
import { isSignedAmount } from '../../../payments/rules/payment.ts';
import type { PaymentFact } from './fact.ts';
import { chainFields, paymentFields } from './fields.ts';
import { transactionKey } from './reconcile.ts';
import { type ChainTransfer } from '../../../payments/rules/chain-transfer.ts';
import type { Tally } from './tally.ts';

/**
 * Payments of the period about which the ledger leaves nothing to ask: settled at a known place, delivered, not refunded. They are kept
 * as hashes of the transfer that each must have made, and of their transactions. A transaction that moved exactly this needs no
 * further look; the payments of all others are kept as a whole in a second fold of the ledger.
 */
export class PlainPayments {
  /** By transaction: the number of its payments; below 0 once they were seen. */
  readonly #transactions = new HashedNumbers();
  /** By transfer with its place: the number of payments that claim it. */
  readonly #transfers = new HashedNumbers();

  /** Takes a payment, which need not be kept then. */
  add(payment: PaymentFact): true {
    const transfer = transferOfPlain(payment);
    for (const [counts, text] of [
      [this.#transactions, transactionKey(transfer)],
      [this.#transfers, transferText(transfer)],
    ] as const)
      counts.set(text, counts.get(text) + 1);
    return true;
  }

  /** Whether these are all transfers that the payments of their one transaction must have made. It is remembered if they are. */
  see(transfers: readonly ChainTransfer[]): boolean {
    const [first] = transfers;
    if (!first || this.#transactions.get(transactionKey(first)) !== transfers.length) return false;
    if (!transfers.every((transfer) => this.#transfers.get(transferText(transfer)) === 1)) return false;
    this.#transactions.set(transactionKey(first), -transfers.length);
    return true;
  }

  /** Whether a payment names this transaction. */
  names(transaction: Pick<ChainTransfer, 'network' | 'transaction'>): boolean {
    return this.#transactions.get(transactionKey(transaction)) > 0;
  }

  isSeen(payment: PaymentFact): boolean {
    return this.#transactions.get(transactionKey(transferOfPlain(payment))) < 0;
  }
}

/**
 * Whether the ledger alone calls a payment delivered and proven, with nothing refunded and no term that differs. Whether it is of the
 * period is for the caller to say.
 */
export function isPlain({ status, settled, call, refunds, differs, ...payment }: PaymentFact): boolean {
  return (
    status === 'settled' &&
    settled?.proof !== undefined &&
    call?.status === 'completed' &&
    refunds.length === 0 &&
    differs === undefined &&
    payment.signedAmount > 0n &&
    isSignedAmount(payment, BigInt(settled.amount)) &&
    payment.payer !== payment.payTo
  );
}

/** Counts a plain payment as matched if its transfer was seen; false if it was not. */
export function tallyPlain(payment: PaymentFact, plain: PlainPayments, tally: Tally): boolean {
  if (!plain.isSeen(payment)) return false;
  const transfer = transferOfPlain(payment);
  tally.addPlain({ ...paymentFields(payment), ...chainFields(transfer) }, transfer);
  return true;
}

/** The transfer that the ledger says a plain payment made. */
function transferOfPlain({ settled, ...payment }: PaymentFact): ChainTransfer {
  if (!settled?.proof) throw new Error('a payment without a place on the chain is not plain');
  const { network, asset, payer, payTo } = payment;
  const { transaction, proof } = settled;
  return { network, asset, from: payer, to: payTo, amount: BigInt(settled.amount), transaction, ...proof };
}

function transferText(transfer: ChainTransfer): string {
  const { asset, from, to, amount, blockNumber, blockHash, logIndex } = transfer;
  return `${transactionKey(transfer)}/${blockNumber}/${blockHash}/${logIndex}/${asset}/${from}/${to}/${amount}`;
}

import { hash } from 'node:crypto';
import type { PaymentFact } from './fact.ts';
import { chainFields, paymentFields } from './fields.ts';
import { type ChainTransfer, transactionKey } from './reconcile.ts';
import type { Tally } from './tally.ts';

/**
 * Payments of the period about which the ledger leaves nothing to ask: settled at a known place, delivered, not refunded. A payment is kept
 * as some 40 bytes of hashes: by its transaction, the sum of what its payments must have moved and where. A transaction that
 * moved exactly this needs no further look; the payments of all others are kept as a whole in a second fold of the ledger.
 */
export class PlainPayments {
  readonly #salt: string;
  #keys = new BigUint64Array(1_024);
  #sums = new BigUint64Array(1_024);
  #counts = new Uint32Array(1_024);
  #seen = new Uint8Array(1_024);
  #size = 0;

  /** `salt`: unknown to whoever writes the ledger or the chain, so that nobody can prepare two different sums that are equal. */
  constructor(salt: string) {
    this.#salt = salt;
  }

  /** Takes a payment, which need not be kept then. */
  add(payment: PaymentFact): true {
    if (2 * (this.#size + 1) > this.#keys.length) this.#grow();
    const transfer = transferOfPlain(payment);
    const slot = this.#slotOf(this.#keyOf(transfer));
    if (this.#counts[slot] === 0) this.#size += 1;
    this.#put(slot, {
      key: this.#keyOf(transfer),
      sum: (this.#sums[slot] ?? 0n) + this.#hash(placeText(transfer)),
      count: (this.#counts[slot] ?? 0) + 1,
    });
    return true;
  }

  /** Whether these are all transfers that the payments of their one transaction must have made. It is remembered where they are. */
  see(transfers: readonly ChainTransfer[]): boolean {
    const [first] = transfers;
    if (!first) return false;
    const slot = this.#slotOf(this.#keyOf(first));
    if (this.#counts[slot] !== transfers.length || this.#seen[slot] === 1) return false;
    const sum = transfers.reduce((all, transfer) => all + this.#hash(placeText(transfer)), 0n);
    if (BigInt.asUintN(64, sum) !== this.#sums[slot]) return false;
    this.#seen[slot] = 1;
    return true;
  }

  /** Whether a payment names this transaction. */
  names(transaction: Pick<ChainTransfer, 'network' | 'transaction'>): boolean {
    return this.#counts[this.#slotOf(this.#keyOf(transaction))] !== 0;
  }

  isSeen(payment: PaymentFact): boolean {
    return this.#seen[this.#slotOf(this.#keyOf(transferOfPlain(payment)))] === 1;
  }

  #keyOf(transaction: Pick<ChainTransfer, 'network' | 'transaction'>): bigint {
    // 0 is an empty slot
    return this.#hash(transactionKey(transaction)) || 1n;
  }

  #hash(text: string): bigint {
    return hash('sha256', `${this.#salt}/${text}`, 'buffer').readBigUInt64LE();
  }

  #slotOf(key: bigint): number {
    const mask = this.#keys.length - 1;
    let slot = Number(key & BigInt(mask));
    while (this.#keys[slot] !== 0n && this.#keys[slot] !== key) slot = (slot + 1) & mask;
    return slot;
  }

  #put(slot: number, { key, sum, count }: { key: bigint; sum: bigint; count: number }): void {
    this.#keys[slot] = key;
    this.#sums[slot] = BigInt.asUintN(64, sum);
    this.#counts[slot] = count;
  }

  #grow(): void {
    const [keys, sums, counts] = [this.#keys, this.#sums, this.#counts];
    this.#keys = new BigUint64Array(2 * keys.length);
    this.#sums = new BigUint64Array(2 * keys.length);
    this.#counts = new Uint32Array(2 * keys.length);
    this.#seen = new Uint8Array(2 * keys.length);
    for (const [at, key] of keys.entries())
      if (key !== 0n) this.#put(this.#slotOf(key), { key, sum: sums[at] ?? 0n, count: counts[at] ?? 0 });
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
    BigInt(settled.amount) === payment.signedAmount &&
    payment.payer !== payment.payTo
  );
}

/** Counts a plain payment as matched if its transfer was seen; false where it was not. */
export function tallyPlain(payment: PaymentFact, plain: PlainPayments, tally: Tally): boolean {
  if (!plain.isSeen(payment)) return false;
  const transfer = transferOfPlain(payment);
  tally.addPlain({ ...paymentFields(payment), ...chainFields(transfer) }, transfer);
  return true;
}

/** The transfer that the ledger says a plain payment made. */
function transferOfPlain({ settled, ...payment }: PaymentFact): ChainTransfer {
  if (!settled?.proof) throw new Error('a payment without a place on the chain is not plain');
  const { network, asset, payer, payTo, signedAmount } = payment;
  const { transaction, proof } = settled;
  return { network, asset, from: payer, to: payTo, amount: signedAmount, transaction, ...proof };
}

function placeText(transfer: ChainTransfer): string {
  const { asset, from, to, amount, blockNumber, blockHash, logIndex } = transfer;
  return `${transactionKey(transfer)}/${blockNumber}/${blockHash}/${logIndex}/${asset}/${from}/${to}/${amount}`;
}

import type { OutFact, PaymentFact } from './fact.ts';
import { transferKey } from './reconcile.ts';

/** What the books had of each payment and transfer at the end of a period, by the time of recording. */
export class BookedFacts {
  readonly #payments = new Map<string, bigint>();
  readonly #transfers = new Map<string, OutFact>();
  #isTaken = false;

  /** Whether the end of the period was reached. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  /** Takes the amounts booked now; later calls change nothing. */
  take(payments: readonly PaymentFact[], recorded: readonly OutFact[]): void {
    if (this.#isTaken) return;
    this.#isTaken = true;
    for (const payment of payments)
      if (payment.settled) this.#payments.set(paymentKey(payment), BigInt(payment.settled.amount));
    for (const fact of recorded) this.#transfers.set(transferKey(fact), fact);
  }

  /** 0 if it was not settled then. */
  ofPayment(payment: PaymentFact): bigint {
    return this.#payments.get(paymentKey(payment)) ?? 0n;
  }

  /** What was recorded then of the transfer at the same place. */
  transferAt(fact: OutFact): OutFact | undefined {
    return this.#transfers.get(transferKey(fact));
  }

  /** The operators' records of unexplained transfers. */
  get transfers(): readonly OutFact[] {
    return [...this.#transfers.values()];
  }
}

/** A payment, whatever happened to it since. */
export function paymentKey({ quoteDigest, payment }: Pick<PaymentFact, 'quoteDigest' | 'payment'>): string {
  const { network, asset, payer, nonce } = payment;
  return `${quoteDigest}/${network}/${asset}/${payer}/${nonce}`;
}

import { HashedNumbers } from '../../base/values/hashed-numbers.ts';

/** The one-time values of a payment besides its own nonce: a caller's nonce, or the payer's own id for it. */
export interface Credential {
  readonly kind: 'caller_nonce' | 'payment_id';
  readonly key: string;
}

const words = {
  caller_nonce: "the caller's nonce was claimed before: one signature is used once",
  payment_id: "the payer's payment id was claimed before: one id pays once",
} as const;

/**
 * Each credential buys one call. A payment that failed frees its credentials once it can never land. The ledger does not say
 * when that is, so another payment may use them afterwards; but if the first one lands after all, both cannot have them.
 */
export class CredentialCheck {
  /** The number of the payment that has a credential, by kind and key; 0 if none has it. */
  readonly #holders = new HashedNumbers();
  readonly #payments = new Map<string, { readonly number: number; readonly keys: readonly Credential[] }>();
  #started = 0;

  /** A payment starts. Returns the problem, or undefined. */
  start(payment: string, credentials: readonly Credential[]): string | undefined {
    if (credentials.length === 0) return undefined;
    this.#started += 1;
    this.#payments.set(payment, { number: this.#started, keys: credentials });
    return this.#take(payment);
  }

  /** A payment failed. */
  free(payment: string): void {
    const { number, keys } = this.#of(payment);
    for (const key of keys.map(keyOf)) if (this.#holders.get(key) === number) this.#holders.set(key, 0);
  }

  /** A payment gets its call. Returns the problem, or undefined. */
  enqueue(payment: string): string | undefined {
    return this.#take(payment);
  }

  /** No later event is of the payment: it keeps its values. */
  forget(payment: string): void {
    this.#payments.delete(payment);
  }

  #take(payment: string): string | undefined {
    const { number, keys } = this.#of(payment);
    for (const credential of keys) {
      const key = keyOf(credential);
      const holder = this.#holders.get(key);
      if (holder !== 0 && holder !== number) return words[credential.kind];
      this.#holders.set(key, number);
    }
    return undefined;
  }

  #of(payment: string) {
    return this.#payments.get(payment) ?? { number: 0, keys: [] };
  }
}

function keyOf({ kind, key }: Credential): string {
  return `${kind}/${key}`;
}

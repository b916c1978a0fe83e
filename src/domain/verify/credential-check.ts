/** What a payment uses up beside itself: a caller's nonce, or the payer's own id for it. */
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
  /** The payment that has a credential, by kind and key. */
  readonly #holders = new Map<string, string>();
  readonly #credentials = new Map<string, readonly Credential[]>();

  /** A payment starts. Returns the problem, or undefined. */
  start(payment: string, credentials: readonly Credential[]): string | undefined {
    if (credentials.length === 0) return undefined;
    this.#credentials.set(payment, credentials);
    return this.#take(payment);
  }

  /** A payment failed. */
  free(payment: string): void {
    for (const credential of this.#of(payment))
      if (this.#holders.get(keyOf(credential)) === payment) this.#holders.delete(keyOf(credential));
  }

  /** A payment gets its call. Returns the problem, or undefined. */
  enqueue(payment: string): string | undefined {
    return this.#take(payment);
  }

  #take(payment: string): string | undefined {
    for (const credential of this.#of(payment)) {
      const key = keyOf(credential);
      const holder = this.#holders.get(key);
      if (holder !== undefined && holder !== payment) return words[credential.kind];
      this.#holders.set(key, payment);
    }
    return undefined;
  }

  #of(payment: string): readonly Credential[] {
    return this.#credentials.get(payment) ?? [];
  }
}

function keyOf({ kind, key }: Credential): string {
  return `${kind}/${key}`;
}

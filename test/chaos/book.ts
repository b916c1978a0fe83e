import type { Payment } from '../support/payer.ts';

/** One signed authorization, however often it is presented. */
export interface SignedOnce {
  /** `asset/payer/nonce`, lower case: how chain and ledger name it too. */
  readonly key: string;
  readonly asset: string;
  readonly payer: string;
  readonly nonce: string;
  readonly payment: Payment;
}

/** One request with one answer, or none. Times are this machine's, in milliseconds. */
export interface Attempt {
  readonly gateway: string;
  readonly sentAt: number;
  readonly endedAt: number;
  /** Undefined where the connection broke or the client would not wait. */
  readonly status: number | undefined;
  readonly code?: string | undefined;
  readonly reason?: string | undefined;
  readonly callId?: number | undefined;
  readonly digest?: string | undefined;
}

/** A client that sends one payment with one request until it is told. */
export interface Presentation {
  readonly visit: string;
  readonly signed: SignedOnce;
  readonly version: 1 | 2;
  readonly path: string;
  readonly body: string;
  readonly attempts: Attempt[];
  end: 'accepted' | 'refused' | 'left' | 'unanswered';
}

/** What clients and peers know of a run, apart from the gateway's own word. */
export interface Book {
  readonly presentations: Presentation[];
  readonly signed: Map<string, SignedOnce>;
  /** Payments of which the facilitator once said, falsely, that they were settled. */
  readonly lies: Set<string>;
  /** The last transaction that settled a payment of a token's payer, as the facilitator told it: `asset/payer`. */
  readonly transactions: Map<string, string>;
  /** Payments that were submitted only after their payer had been told that they failed. */
  readonly landedLate: Set<string>;
  noteLie(asset: string, payer: string, nonce: string): void;
  add(payment: Payment): SignedOnce;
}

export function paymentKey(asset: string, payer: string, nonce: string): string {
  return `${asset}/${payer}/${nonce}`.toLowerCase();
}

export function createBook(): Book {
  const signed = new Map<string, SignedOnce>();
  const lies = new Set<string>();
  return {
    presentations: [],
    signed,
    lies,
    transactions: new Map(),
    landedLate: new Set(),
    noteLie: (asset, payer, nonce) => void lies.add(paymentKey(asset, payer, nonce)),
    add(payment) {
      const { from, nonce } = payment.payload.authorization;
      const { asset } = payment.accepted;
      const one = { key: paymentKey(asset, from, nonce), asset, payer: from, nonce, payment };
      signed.set(one.key, one);
      return one;
    },
  };
}

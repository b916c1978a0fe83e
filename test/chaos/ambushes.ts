import { type Answer, jsonAnswer } from './http-proxy.ts';

/** What a malicious facilitator does to single payments, planned before they are sent. */
export interface Ambushes {
  /** The first settle request of this payment is answered with a failure before broadcast, and nothing is sent. */
  failFirstSettle(nonce: string): void;
  /** The planned answer to a settle request, if there is one. */
  answerSettle(
    nonce: string,
    about: { readonly network: string; readonly payer: string },
  ): Answer | undefined;
}

export function createAmbushes(): Ambushes {
  const failing = new Set<string>();
  return {
    failFirstSettle: (nonce) => void failing.add(nonce),
    answerSettle(nonce, about) {
      if (!failing.delete(nonce)) return undefined;
      return jsonAnswer({ success: false, errorReason: 'insufficient_funds', transaction: '', ...about });
    },
  };
}

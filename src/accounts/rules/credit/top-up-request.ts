/**
 * The request id under which a paid call buys its credit, once. It contains a colon, so that no operator's idempotency key can be
 * the same.
 */
export function topUpId(callId: number): string {
  return `top_up:${callId}`;
}

/**
 * The request id under which that credit is reversed, or a part of it, once.
 * @param reversedAtoms how much of the payment was reversed before
 */
export function reversalId(callId: number, reversedAtoms: bigint): string {
  return reversedAtoms === 0n ? `reverse:${callId}` : `reverse:${callId}:${reversedAtoms}`;
}

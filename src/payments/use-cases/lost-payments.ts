import type pg from 'pg';
import { latestValidBefore } from '../rules/payment-window.ts';
import type { SignedPayment } from '../rules/payment.ts';
import { readRecovery, type Recovery } from '../../ledger/store/recovery.ts';

/** Payments that a recovered ledger lost and whose search on the chain is not finished. */
export interface LostPayments {
  /**
   * Whether this may be one of them. Then its signature is public, as calldata, and does not prove who sends it: it must not
   * be delivered before the search has claimed it.
   */
  mayHold(payment: SignedPayment, maxTimeoutSecs: number): Promise<boolean>;
}

/** A search ends long after the gateways were started again, and a recovery requires that they are stopped. */
const rereadMs = 5_000;

export function createLostPayments(pool: pg.Pool): LostPayments {
  let read: { readonly atMs: number; readonly recovery: Promise<Recovery | undefined> } | undefined;
  return {
    async mayHold({ network, validBefore }, maxTimeoutSecs) {
      const nowMs = performance.now();
      if (!read || nowMs - read.atMs > rereadMs) read = { atMs: nowMs, recovery: readRecovery(pool) };
      const recovery = await read.recovery.catch((error: unknown) => {
        read = undefined;
        throw error;
      });
      if (!recovery || recovery.searched.has(network)) return false;
      const recoveredAtSecs = Math.ceil(Date.parse(recovery.at) / 1_000);
      return validBefore <= BigInt(latestValidBefore(recoveredAtSecs, maxTimeoutSecs));
    },
  };
}

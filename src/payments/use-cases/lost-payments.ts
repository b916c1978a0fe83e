import type pg from 'pg';
import { latestValidBefore } from '../rules/payment-window.ts';
import type { SignedPayment } from '../rules/payment.ts';
import { readRecovery, type Recovery } from '../../ledger/store/recovery.ts';

/** A search ends long after the gateways were started again, and a recovery requires that they are stopped. */
const rereadMs = 5_000;

export type LostPayments = ReturnType<typeof createLostPayments>;

/** Payments that a recovered ledger lost and whose search on the chain is not finished. */
export function createLostPayments(pool: pg.Pool) {
  let read: { readonly atMs: number; readonly recovery: Promise<Recovery | undefined> } | undefined;
  return {
    /**
     * Whether this may be one of them. Then its signature is public, as calldata, and does not prove who sends it: it must not
     * be delivered before the search has claimed it.
     */
    async mayHold({ network, validBefore }: SignedPayment, maxTimeoutSecs: number): Promise<boolean> {
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

import type pg from 'pg';
import { callFunction } from '../../ledger/store/functions.ts';

/** A spend whose completion is to start before the spend lands. */
export interface ExposureRequest {
  readonly stream: string;
  readonly scope: string;
  readonly commitment: string;
  readonly nonce: bigint;
  readonly amount: bigint;
  /** The largest exposure to one account. */
  readonly limit: bigint;
  /** The account on its chain. */
  readonly nextNonce: bigint;
  readonly balance: bigint;
}

/** Whether the completion may start; then its spend counts as exposure until that ends. Serialised per account. */
export function exposeSpend(pool: pg.Pool, request: ExposureRequest): Promise<boolean> {
  const { stream, scope, commitment, nonce, amount, limit, nextNonce, balance } = request;
  return callFunction(pool, 'expose_spend', [
    stream,
    scope,
    commitment,
    String(nonce),
    String(amount),
    String(limit),
    String(nextNonce),
    String(balance),
  ]);
}

/** Ends a spend's exposure; if the spend failed, its account gets no exposure again. */
export function endExposure(pool: pg.Pool, stream: string, hasFailed: boolean): Promise<void> {
  return callFunction(pool, 'end_exposure', [stream, hasFailed]);
}

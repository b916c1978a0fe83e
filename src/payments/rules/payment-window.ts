import { facilitatorMarginSecs } from '../../base/values/facilitator-margin.ts';

/** The times a payment is checked against, in Unix seconds and seconds. */
export interface PaymentWindow {
  readonly nowSecs: number;
  readonly maxTimeoutSecs: number;
  /** How long settling may take, the facilitator's own margin included. */
  readonly settleMarginSecs: number;
}

/** Clocks of honest payers run ahead by up to this. */
const clockSkewSecs = 60;

/** The latest end of a payment's validity that is accepted at a time; all in Unix seconds. */
export function latestValidBefore(nowSecs: number, maxTimeoutSecs: number): number {
  return nowSecs + maxTimeoutSecs + clockSkewSecs;
}

/** How long settling may take, the facilitator's own margin included. */
export function settleMarginSecs(settleTimeoutMs: number): number {
  return facilitatorMarginSecs + Math.ceil(settleTimeoutMs / 1_000);
}

/** From when on a signature that is valid before a time is not settled any more; all in Unix seconds. */
export function settleEndSecs(validBefore: bigint, marginSecs: number): number {
  return Number(validBefore) - marginSecs + 1;
}

/** Why a signature's validity (Unix seconds) does not fit the window: a reason code. Undefined if it fits. */
export function windowError(
  validAfter: bigint,
  validBefore: bigint,
  window: PaymentWindow,
): string | undefined {
  const now = BigInt(window.nowSecs);
  // the token requires a block time after it, not at it
  if (validAfter >= now) return 'authorization_not_yet_valid';
  if (validBefore <= now) return 'authorization_expired';
  if (window.nowSecs >= settleEndSecs(validBefore, window.settleMarginSecs))
    return 'authorization_expires_too_soon';
  if (validBefore > BigInt(latestValidBefore(window.nowSecs, window.maxTimeoutSecs)))
    return 'authorization_valid_too_long';
  return undefined;
}

/** A settle request is no longer under way this long after its time limits. */
const graceSecs = 5;

/** How long after its start a payment without an outcome may still have its first settle request under way. */
export function underWaySecs(limits: {
  readonly facilitatorSettleTimeoutMs: number;
  readonly confirmTimeoutMs: number;
}): number {
  return (limits.facilitatorSettleTimeoutMs + limits.confirmTimeoutMs) / 1_000 + graceSecs;
}

const mostSharedAppendMs = 10;

/**
 * How long an append of a payment may wait for another one, to share its transaction: a hundredth of what settling takes, which no
 * client notices. Payments that wait for a slow facilitator arrive one by one, and a transaction for each costs the database several
 * times what a shared one does.
 */
export function sharedAppendMs(typicalSettleMs: number): number {
  return Math.min(mostSharedAppendMs, Math.floor(typicalSettleMs / 100));
}

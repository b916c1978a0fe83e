import type { RotatingSecret } from '../values/rotating-secret.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import type { RootTable } from './root.ts';
import { readRotatingSecret } from './secrets.ts';
import { facilitatorMarginSecs } from '../values/facilitator-margin.ts';

/** A payment must outlive the settlement by this much, or the facilitator refuses it. */
const settleMarginMs = facilitatorMarginSecs * 1_000;

/** What the `facilitator_*` keys need beyond their own schemas. */
export interface FacilitatorAccess {
  readonly facilitatorUrl: string;
  /** The bearer tokens. */
  readonly facilitatorTokens: RotatingSecret | undefined;
}

/** Checks the `facilitator_*` keys and reads the token; undefined if the address is missing. */
export async function readFacilitator(
  root: RootTable,
  isRequired: boolean,
  reading: Reading,
): Promise<FacilitatorAccess | undefined> {
  if (isRequired && !root.names('facilitator_url')) reading.report.mistake(['facilitator_url'], 'is missing');
  checkTimeouts(root, reading.report);
  const facilitatorTokens = await readRotatingSecret(root, 'facilitator_token', { minChars: 1 }, reading);
  const { facilitatorUrl } = root.values;
  return facilitatorUrl === undefined ? undefined : { facilitatorUrl, facilitatorTokens };
}

function checkTimeouts({ values, names }: RootTable, report: Report): void {
  const { maxTimeoutSecs, facilitatorSettleTimeoutMs: settleTimeoutMs } = values;
  if (maxTimeoutSecs === undefined || settleTimeoutMs === undefined) return;
  if (maxTimeoutSecs * 1_000 > settleTimeoutMs + settleMarginMs) return;
  // reported at the key that the file names
  if (names('max_timeout_secs')) {
    const leastSecs = Math.floor((settleTimeoutMs + settleMarginMs) / 1_000) + 1;
    report.mistake(
      ['max_timeout_secs'],
      `must be at least ${leastSecs}: more than facilitator_settle_timeout_ms and ${facilitatorMarginSecs} s`,
    );
  } else {
    const mostMs = maxTimeoutSecs * 1_000 - settleMarginMs - 1;
    report.mistake(
      ['facilitator_settle_timeout_ms'],
      `must be at most ${mostMs}: ${facilitatorMarginSecs} s less than max_timeout_secs`,
    );
  }
}

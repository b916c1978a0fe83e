import { ed25519KeysOf } from '../values/ed25519.ts';
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
  if (!reading.skippedSecrets) checkTokens(facilitatorTokens ?? [], reading.report);
  const { facilitatorUrl } = root.values;
  return facilitatorUrl === undefined ? undefined : { facilitatorUrl, facilitatorTokens };
}

/** A bearer token has no colon (RFC 6750, section 2.1), so one with a colon was meant as a key. */
function checkTokens(tokens: readonly string[], report: Report): void {
  if (tokens.every((token) => !token.includes(':') || isKey(token))) return;
  report.mistake(
    ['facilitator_token'],
    'has a colon, so it must be ID:KEY, the id of a key that signs requests and its 64 bytes (Ed25519) in base64',
  );
}

/** Whether it is an id and a key whose public half is that of its seed. */
function isKey(token: string): boolean {
  const [, key] = /^[^:]+:([A-Za-z0-9+/]{86}==)$/.exec(token) ?? [];
  if (key === undefined) return false;
  const bytes = Buffer.from(key, 'base64');
  return ed25519KeysOf(bytes.subarray(0, 32)).publicKey.equals(bytes.subarray(32));
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

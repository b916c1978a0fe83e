import { z } from 'zod';
import { ed25519KeysOf } from '../values/ed25519.ts';
import type { Address } from '../values/primitives.ts';
import type { RotatingSecret } from '../values/rotating-secret.ts';
import type { Path, Report } from './mistakes.ts';
import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { rotatingSecret } from './secret-source.ts';
import { readRotatingSecret } from './secrets.ts';
import { readTables } from './table.ts';
import { secureBaseUrl } from './urls.ts';
import { address } from './values.ts';
import { facilitatorMarginSecs } from '../values/facilitator-margin.ts';

/** A payment must outlive the settlement by this much, or the facilitator refuses it. */
const settleMarginMs = facilitatorMarginSecs * 1_000;

export const facilitatorShape = {
  url: secureBaseUrl.describe('http on loopback only'),
  token: rotatingSecret.describe('As `facilitator_token`'),
  wallet_factories: z
    .array(address)
    .default([])
    .describe('Contracts through which it deploys the wallet of a payment before it settles it (ERC-6492)'),
} as const;

/** One facilitator. */
export interface FacilitatorConfig {
  /** As events name it: its URL without the protocol. Undefined for the one of `facilitator_url`, which events do not name. */
  readonly name: string | undefined;
  /** As people read it. */
  readonly label: string;
  readonly url: string;
  readonly tokens: RotatingSecret | undefined;
  /** Through which it deploys wallets. Nothing that facilitators answer says it. */
  readonly walletFactories: readonly Address[];
}

/**
 * Reads the facilitators, from `facilitator_url` or from `[[facilitators]]`, and their tokens. What is wrong is reported; undefined if
 * there is none.
 */
export async function readFacilitators(
  root: RootTable,
  isRequired: boolean,
  reading: Reading,
): Promise<readonly FacilitatorConfig[] | undefined> {
  const { report } = reading;
  checkTimeouts(root, report);
  const single = await readSingle(root, reading);
  if (!root.names('facilitators')) {
    if (isRequired && !root.names('facilitator_url')) report.mistake(['facilitator_url'], 'is missing');
    return single && [single];
  }
  for (const key of ['facilitator_url', 'facilitator_token'] as const)
    if (root.names(key)) report.mistake([key], 'is in [[facilitators]]: write it in one of the two places');
  return readListed(root.values.facilitators, reading);
}

async function readSingle(root: RootTable, reading: Reading): Promise<FacilitatorConfig | undefined> {
  const tokens = await readRotatingSecret(root, 'facilitator_token', { minChars: 1 }, reading);
  if (!reading.skippedSecrets) checkTokens(tokens ?? [], ['facilitator_token'], reading.report);
  const { facilitatorUrl: url } = root.values;
  if (url === undefined) return undefined;
  return { name: undefined, label: new URL(url).host, url, tokens, walletFactories: [] };
}

async function readListed(raw: unknown, reading: Reading): Promise<readonly FacilitatorConfig[]> {
  const { report } = reading;
  if (Array.isArray(raw) && raw.length === 0) report.mistake(['facilitators'], 'names none');
  const listed: FacilitatorConfig[] = [];
  const places = new Map<string, number>();
  for (const [index, table] of readTables(facilitatorShape, raw, ['facilitators'], report).entries()) {
    const tokens = await readRotatingSecret(table, 'token', { minChars: 1 }, reading);
    if (!reading.skippedSecrets) checkTokens(tokens ?? [], [...table.at, 'token'], report);
    const { url, walletFactories = [] } = table.values;
    if (url === undefined) continue;
    const name = url.slice(url.indexOf('//') + 2);
    const earlier = places.get(name);
    if (earlier !== undefined)
      report.mistake([...table.at, 'url'], `is the one of facilitators[${earlier}] too`);
    places.set(name, earlier ?? index);
    listed.push({ name, label: name, url, tokens, walletFactories });
  }
  return listed;
}

/** A bearer token has no colon (RFC 6750, section 2.1), so one with a colon was meant as a key. */
function checkTokens(tokens: readonly string[], at: Path, report: Report): void {
  if (tokens.every((token) => !token.includes(':') || isKey(token))) return;
  report.mistake(
    at,
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

import type { ChatConfig } from './config.ts';
import { readModels } from './models.ts';
import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { readSpend } from './spend.ts';
import { readTable } from './table.ts';
import { readUpstreams } from './upstreams.ts';
import { readTopUps } from './top-ups.ts';
import { matching, wholeNumber } from './values.ts';
import type { Offered } from './jobs.ts';

const mebibyte = 1_048_576;
/** Every admitted request of the last minute is remembered, so their number is bounded. */
const perMinute = wholeNumber(1, 1_000);

const shape = {
  currency: matching(/^[A-Z]{3,8}$/, 'must be 3 to 8 capitals, such as "USD"').default('USD'),
  anonymous_per_minute: perMinute.default(10),
  anonymous_per_day: wholeNumber(1, 1_000_000).default(5),
  session_per_minute: perMinute.default(30),
  key_per_minute: perMinute.default(60),
  spend_auth_per_minute: perMinute.default(120),
  failed_auth_per_minute: perMinute.default(20),
  max_body_bytes: wholeNumber(1, 64 * mebibyte).default(10 * mebibyte),
  ipv6_prefix: wholeNumber(32, 128).default(64),
} as const;

/**
 * Reads all that the feature chat needs. When the feature is off nothing is missing, but what stands in the
 * file is checked all the same. Undefined if the feature is off or after a report.
 */
export async function readChat(
  root: RootTable,
  offered: Offered,
  reading: Reading,
): Promise<ChatConfig | undefined> {
  const { report } = reading;
  const isOn = root.values.features?.includes('chat') ?? false;
  const { whole } = readTable(shape, root.values.chat ?? {}, ['chat'], report);
  const spendAuth = await readSpend(root.values.spend, reading);
  const topUps = readTopUps(root.values.top_ups, root, offered, report);
  const upstreams = await readUpstreams(root.values.upstreams, reading);
  const models = readModels(root.values.models, upstreams.names, report);
  if (isOn && isEmpty(root.values.models)) report.mistake(['models'], 'is missing: chat needs a model');
  if (!isOn || whole === undefined || reading.findings.mistakes.length > 0) return undefined;
  const used = new Set(models.flatMap(({ targets }) => targets.map(({ upstream }) => upstream)));
  for (const [index, { name }] of upstreams.whole.entries()) {
    if (!used.has(name)) report.warning(['upstreams', index], `no model is served by ${name}`);
  }
  return {
    currency: whole.currency,
    upstreams: upstreams.whole,
    models,
    anonymousPerMinute: whole.anonymous_per_minute,
    anonymousPerDay: whole.anonymous_per_day,
    sessionPerMinute: whole.session_per_minute,
    keyPerMinute: whole.key_per_minute,
    spendAuthPerMinute: whole.spend_auth_per_minute,
    failedAuthPerMinute: whole.failed_auth_per_minute,
    maxBodyBytes: whole.max_body_bytes,
    ipv6Prefix: whole.ipv6_prefix,
    spend: spendAuth,
    topUps,
  };
}

function isEmpty(tables: unknown): boolean {
  return tables === undefined || (Array.isArray(tables) && tables.length === 0);
}

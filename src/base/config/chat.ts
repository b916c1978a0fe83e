import { type ModelConfig, readModels } from './models.ts';
import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { type ConfigOf, readTable, reloadable } from './table.ts';
import { readUpstreams, type UpstreamConfig } from './upstreams.ts';
import { matching, oneOf, wholeNumber } from './values.ts';

const mebibyte = 1_048_576;
/** The gateway stores every admitted request of the last minute, so their number is bounded. */
const perMinute = wholeNumber(1, 1_000);

/** Limits are by minute unless their name says otherwise. */
export const chatShape = {
  /** The unit of credit and prices. Balances are numbers of it. */
  currency: matching(/^[A-Z]{3,8}$/, 'must be 3 to 8 capitals, such as "USD"').default('USD'),
  /** What counts against them: every request that carries the credential, or only those that are admitted. */
  count: reloadable(oneOf(['requests', 'admitted']).default('requests')),
  anonymous_per_minute: reloadable(perMinute.default(10)),
  /** By UTC day. */
  anonymous_per_day: reloadable(wholeNumber(1, 1_000_000).default(5)),
  session_per_minute: reloadable(perMinute.default(30)),
  key_per_minute: reloadable(perMinute.default(60)),
  spend_auth_per_minute: reloadable(perMinute.default(120)),
  /** Of all keys and sessions of an account together; no limit where it is left out. */
  account_per_minute: reloadable(perMinute.optional()),
  /** Of free models, by account and by client address, over all credentials together; no limit where it is left out. */
  free_per_minute: reloadable(perMinute.optional()),
  /** By UTC day; no limit where it is left out. */
  free_per_day: reloadable(wholeNumber(1, 1_000_000).optional()),
  /** Of requests that are refused before their admission and count against no credential, by client address. */
  refused_per_minute: reloadable(perMinute.default(120)),
  /** Of requests with an invalid credential, by client address. */
  failed_auth_per_minute: reloadable(perMinute.default(20)),
  /** Completions at the same time, in one gateway: of a key, an account, a client address. */
  max_concurrent_per_client: reloadable(wholeNumber(1, 100_000).default(128)),
  /** Of these, how many of free models. */
  max_concurrent_free_per_client: reloadable(wholeNumber(1, 100_000).default(24)),
  max_body_bytes: reloadable(wholeNumber(1, 64 * mebibyte).default(10 * mebibyte)),
  /** Of a request without credentials: its body is parsed before anything is known of its caller. */
  anonymous_max_body_bytes: reloadable(wholeNumber(1, 64 * mebibyte).default(mebibyte)),
  /** How many leading bits make two IPv6 addresses one client. */
  ipv6_prefix: reloadable(wholeNumber(32, 128).default(64)),
} as const;

export interface ChatConfig extends ConfigOf<typeof chatShape> {
  /** Unique names, in the order of the file. */
  readonly upstreams: readonly UpstreamConfig[];
  /** At least one; unique names, in the order of the file. */
  readonly models: readonly ModelConfig[];
}

/**
 * Reads `[chat]`, `[[upstreams]]` and `[[models]]`. When the feature is off, these tables may be missing; those in the file
 * are checked. Undefined if the feature is off or after a report.
 */
export async function readChat(
  root: RootTable,
  isOn: boolean,
  reading: Reading,
): Promise<ChatConfig | undefined> {
  const { report } = reading;
  const { whole } = readTable(chatShape, root.values.chat ?? {}, ['chat'], report);
  const upstreams = await readUpstreams(root.values.upstreams, reading);
  const models = readModels(root.values.models, upstreams.names, report);
  if (isOn && isEmpty(root.values.models)) report.mistake(['models'], 'is missing: chat needs a model');
  if (!isOn || whole === undefined || reading.findings.mistakes.length > 0) return undefined;
  const used = new Set(models.flatMap(({ targets }) => targets.map(({ upstream }) => upstream)));
  for (const [index, { name }] of upstreams.whole.entries()) {
    if (!used.has(name)) report.warning(['upstreams', index], `no model is served by ${name}`);
  }
  return { ...whole, upstreams: upstreams.whole, models };
}

function isEmpty(tables: unknown): boolean {
  return tables === undefined || (Array.isArray(tables) && tables.length === 0);
}

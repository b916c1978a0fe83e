import { z } from 'zod';
import type { RoutingConfig } from './config.ts';
import { readModels } from './models.ts';
import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { readSpendAuth } from './spend-auth.ts';
import { readTable } from './table.ts';
import { readUpstreams } from './upstreams.ts';
import { readTopUps } from './top-ups.ts';
import { matching, wholeNumber } from './values.ts';
import type { Offered } from './x402.ts';

const mebibyte = 1_048_576;
/** Every admitted request of the last minute is remembered, so their number is bounded. */
const perMinute = wholeNumber(1, 1_000);

const routingShape = {
  currency: matching(/^[A-Z]{3,8}$/, 'must be 3 to 8 capitals, such as "USD"').default('USD'),
  anonymous_per_minute: perMinute.default(10),
  anonymous_per_day: wholeNumber(1, 1_000_000).default(5),
  session_per_minute: perMinute.default(30),
  key_per_minute: perMinute.default(60),
  spend_auth_per_minute: perMinute.default(120),
  failed_auth_per_minute: perMinute.default(20),
  max_body_bytes: wholeNumber(1, 64 * mebibyte).default(10 * mebibyte),
  ipv6_prefix: wholeNumber(32, 128).default(64),
  spend_auth: z.unknown(),
  top_ups: z.unknown(),
} as const;

/**
 * Reads all that the routing feature needs. When the feature is off nothing is missing, but what stands in the
 * file is checked all the same. Undefined if the feature is off or after a report.
 */
export async function readRouting(
  root: RootTable,
  offered: Offered,
  reading: Reading,
): Promise<RoutingConfig | undefined> {
  const { report } = reading;
  const isOn = root.values.features?.includes('routing') ?? false;
  const { whole, values } = readTable(routingShape, root.values.routing ?? {}, ['routing'], report);
  const spendAuth = await readSpendAuth(values.spend_auth, reading);
  const topUps = readTopUps(values.top_ups, root, offered, report);
  const upstreams = await readUpstreams(root.values.upstreams, reading);
  const models = readModels(root.values.models, upstreams.names, report);
  if (isOn && isEmpty(root.values.models)) report.mistake(['models'], 'is missing: routing needs a model');
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
    spendAuth,
    topUps,
  };
}

function isEmpty(tables: unknown): boolean {
  return tables === undefined || (Array.isArray(tables) && tables.length === 0);
}

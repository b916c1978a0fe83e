import type { Constants } from './constants.ts';
import { type ModelConfig, readModels } from './models.ts';
import type { Reading } from './reading.ts';
import type { RootTable } from './root.ts';
import { type ConfigOf, readTable, reloadable } from './table.ts';
import { readUpstreams, type UpstreamConfig } from './upstreams.ts';
import { matching, wholeNumber } from './values.ts';

/** The gateway stores every admitted request of the last minute, so their number is bounded. */
const perMinute = wholeNumber(1, 1_000);

/** Limits are by minute unless their name says otherwise. */
export const chatShape = {
  currency: matching(/^[A-Z]{3,8}$/, 'must be 3 to 8 capitals, such as "USD"')
    .default('USD')
    .describe('Currency of credit and prices'),
  anonymous_per_day: reloadable(wholeNumber(1, 1_000_000).default(5)).describe(
    'By address and UTC day, without credentials',
  ),
  key_per_minute: reloadable(perMinute.default(60)).describe('By API key'),
  account_per_minute: reloadable(perMinute.optional()).describe(
    'By account, over its keys and sessions; default: no limit',
  ),
  free_per_day: reloadable(wholeNumber(1, 1_000_000).optional()).describe(
    'Free models, by account and by address, by UTC day; default: no limit',
  ),
} as const;

type Bounds = Constants['chat'];

export interface ChatConfig extends ConfigOf<typeof chatShape>, Bounds {
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
  return { ...reading.constants.chat, ...whole, upstreams: upstreams.whole, models };
}

function isEmpty(tables: unknown): boolean {
  return tables === undefined || (Array.isArray(tables) && tables.length === 0);
}

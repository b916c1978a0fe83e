import { z } from 'zod';
import { type JobId, jobKey } from '../values/job.ts';
import type { RotatingSecret } from '../values/rotating-secret.ts';
import { readChainEvent } from '../values/triggers/chain-event.ts';
import { readSchedule } from '../values/triggers/cron-schedule.ts';
import { missedPolicies } from '../values/triggers/due-firings.ts';
import { configuredTriggers } from '../values/triggers/trigger.ts';
import type { Constants } from './constants.ts';
import type { Path, Report } from './mistakes.ts';
import { rpcUrlOf } from './networks.ts';
import type { Reading } from './reading.ts';
import { createHindrances, type RunnerConfig } from './runners.ts';
import { rotatingSecret } from './secret-source.ts';
import { readRotatingSecret } from './secrets.ts';
import { type ConfigOf, isTable, readTable, readValue, type Shape } from './table.ts';
import type { TopUpConfig } from './top-ups.ts';
import { address, jobIndex, network, oneOf, plainName, serviceId, wholeNumber } from './values.ts';

const text = z.string('must be text');

/** The keys of every trigger. */
export const triggerShape = {
  name: plainName.describe('Unique, in logs, metrics and alerts'),
  kind: oneOf(configuredTriggers).describe('Decides which other keys apply'),
  service_id: serviceId.describe('Service of the called job'),
  job_index: jobIndex.describe('Its index in the service'),
} as const;

/** 24 bytes, the least that Standard Webhooks recommends, in base64. */
const leastSecretChars = 32;

const webhookTriggerShape = {
  ...triggerShape,
  kind: oneOf(['webhook']),
  secret: rotatingSecret.describe(
    'Senders sign with it: `whsec_` and base64 (Standard Webhooks), or text whose bytes are the key',
  ),
} as const;

type Bounds = Constants['webhookTrigger'];

/** Requests that a sender signs make calls (`POST /triggers/webhook/{name}`). */
export interface WebhookTrigger extends ConfigOf<typeof webhookTriggerShape>, Bounds {
  readonly secrets: RotatingSecret;
}

async function readWebhookTrigger(
  raw: unknown,
  at: Path,
  reading: Reading,
): Promise<WebhookTrigger | undefined> {
  const table = readTable(webhookTriggerShape, raw, at, reading.report);
  const missing = 'is missing: say where it is, as "env:NAME" or "file:/path"';
  const rules = { minChars: leastSecretChars, missing };
  const secrets = await readRotatingSecret(table, 'secret', rules, reading);
  for (const secret of secrets ?? [])
    if (secret.startsWith('whsec_') && !isKey(secret.slice('whsec_'.length)))
      reading.report.mistake(
        [...at, 'secret'],
        'begins with whsec_, but no base64 of 24 to 64 bytes follows',
      );
  return table.whole && secrets && { ...reading.constants.webhookTrigger, ...table.whole, secrets };
}

function isKey(base64: string): boolean {
  const { length } = Buffer.from(base64, 'base64');
  return /^[A-Za-z0-9+/]+={0,2}$/.test(base64) && length >= 24 && length <= 64;
}

const cronTriggerShape = {
  ...triggerShape,
  kind: oneOf(['cron']),
  schedule: text.describe(
    'Minute, hour, day, month, weekday; seconds may come first; or `@daily` and others',
  ),
  time_zone: text.default('UTC').describe('Time zone, such as `Europe/Berlin`'),
  missed: oneOf(missedPolicies)
    .default('skip')
    .describe('Which times fire that were missed by over a minute'),
} as const;

/** The times of a schedule make calls. */
export type CronTriggerConfig = ConfigOf<typeof cronTriggerShape> & Constants['cronTrigger'];

async function readCronTrigger(
  raw: unknown,
  at: Path,
  { report, constants }: Reading,
): Promise<CronTriggerConfig | undefined> {
  const { values, whole } = readTable(cronTriggerShape, raw, at, report);
  const { schedule, timeZone } = values;
  if (schedule === undefined || timeZone === undefined) return undefined;
  const answer = readSchedule(schedule, timeZone);
  if (answer.kind === 'schedule') return whole && { ...whole, ...constants.cronTrigger };
  report.mistake([...at, answer.at], answer.text);
  return undefined;
}

const mostAddresses = 100;

const chainTriggerShape = {
  ...triggerShape,
  kind: oneOf(['chain']),
  network: network.describe("The contracts' chain"),
  addresses: z
    .array(address, 'must be an array of addresses')
    .min(1, 'must have an address')
    .max(mostAddresses, `must have at most ${mostAddresses} addresses`)
    .describe('Contracts whose events trigger calls'),
  event: text.describe("The event's declaration in Solidity"),
  filters: z
    .unknown()
    .optional()
    .meta({ type: 'table of values by argument' })
    .describe('Required values of indexed arguments'),
  confirmations: wholeNumber(0, 10_000)
    .optional()
    .describe("Blocks above the event's; default: until it is final"),
  start_block: wholeNumber(0, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe('First block to read; default: the next at the first start'),
} as const;

/** The events of contracts make calls. */
export interface ChainTriggerConfig
  extends ConfigOf<typeof chainTriggerShape>, Readonly<Constants['chainTrigger']> {
  /** Of the network. */
  readonly rpcUrl: string;
}

async function readChainTrigger(
  raw: unknown,
  at: Path,
  reading: Reading,
): Promise<ChainTriggerConfig | undefined> {
  const { report } = reading;
  const { values, whole } = readTable(chainTriggerShape, raw, at, report);
  const { event, filters = {} } = values;
  const rpcUrl = rpcUrlOf(values.network, [...at, 'network'], reading);
  if (!isTable(filters)) {
    report.mistake([...at, 'filters'], 'must be a table: the name of an indexed argument, and its value');
    return undefined;
  }
  if (event === undefined) return undefined;
  const answer = readChainEvent(event, filters);
  if (answer.kind === 'event')
    return whole && rpcUrl !== undefined
      ? { ...whole, ...reading.constants.chainTrigger, rpcUrl }
      : undefined;
  report.mistake([...at, answer.at], answer.text);
  return undefined;
}

/** What calls a job without a payment. */
export type TriggerConfig = WebhookTrigger | CronTriggerConfig | ChainTriggerConfig;

type ReadTrigger = (raw: unknown, at: Path, reading: Reading) => Promise<TriggerConfig | undefined>;

const readers: Readonly<Record<TriggerConfig['kind'], ReadTrigger>> = {
  webhook: readWebhookTrigger,
  cron: readCronTrigger,
  chain: readChainTrigger,
};
/** The keys of each kind. */
export const triggerShapes: Readonly<Record<TriggerConfig['kind'], Shape>> = {
  webhook: webhookTriggerShape,
  cron: cronTriggerShape,
  chain: chainTriggerShape,
};

/** Reads `[[triggers]]`. Returns the whole ones; what is wrong with the others is reported. */
export async function readTriggers(
  raw: unknown,
  isJobsOn: boolean,
  reading: Reading,
): Promise<TriggerConfig[]> {
  const { report } = reading;
  if (raw === undefined) return [];
  if (!Array.isArray(raw)) {
    report.mistake(['triggers'], 'must be an array of tables: [[triggers]]');
    return [];
  }
  if (!isJobsOn) report.mistake(['triggers'], 'needs the feature x402: a trigger calls a job');
  const triggers: TriggerConfig[] = [];
  const names = new Map<string, number>();
  for (const [index, element] of raw.entries()) {
    const at: Path = ['triggers', index];
    const trigger = await readTrigger(element, at, reading);
    if (!trigger) continue;
    const earlier = names.get(trigger.name);
    if (earlier === undefined) names.set(trigger.name, index);
    else report.mistake([...at, 'name'], `"${trigger.name}" is the name of triggers[${earlier}] too`);
    triggers.push(trigger);
  }
  return triggers;
}

async function readTrigger(raw: unknown, at: Path, reading: Reading): Promise<TriggerConfig | undefined> {
  const named = readValue(
    triggerShape.kind,
    isTable(raw) ? raw['kind'] : undefined,
    [...at, 'kind'],
    reading.report,
  );
  if (!named) return undefined;
  return readers[named.value](raw, at, reading);
}

/** A trigger charges no payer, so it cannot call a job that sells credit; and its calls need a runner. */
export function checkTriggerJobs(
  triggers: readonly (JobId & { readonly name: string })[],
  topUps: readonly TopUpConfig[],
  runners: readonly RunnerConfig[],
  report: Report,
): void {
  const hindranceOf = createHindrances(topUps, runners);
  for (const [index, trigger] of triggers.entries()) {
    const hindrance = hindranceOf(trigger);
    if (hindrance === 'sells_credit')
      report.mistake(['triggers', index], `job ${jobKey(trigger)} sells credit: only a payment can call it`);
    if (hindrance === 'unserved')
      report.warning(
        ['triggers', index],
        `no runner serves service ${trigger.serviceId}: the calls of "${trigger.name}" wait until one does`,
      );
  }
}

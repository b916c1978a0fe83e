import { type JobId, jobKey } from '../values/job.ts';
import { type TriggerKind, triggerKinds } from '../values/triggers/trigger.ts';
import { type ChainTriggerConfig, chainTriggerShape, readChainTrigger } from './chain-trigger.ts';
import { type CronTriggerConfig, cronTriggerShape, readCronTrigger } from './cron-trigger.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import type { RunnerConfig } from './runners.ts';
import { isTable, readValue, type Shape } from './table.ts';
import type { TopUpConfig } from './top-ups.ts';
import { oneOf } from './values.ts';
import { readWebhookTrigger, type WebhookTrigger, webhookTriggerShape } from './webhook-trigger.ts';

/** What calls a job without a payment. A kind has its own file, with its keys. */
export type TriggerConfig = WebhookTrigger | CronTriggerConfig | ChainTriggerConfig;

type ReadTrigger = (raw: unknown, at: Path, reading: Reading) => Promise<TriggerConfig | undefined>;

const readers: Readonly<Record<TriggerKind, ReadTrigger>> = {
  webhook: readWebhookTrigger,
  cron: readCronTrigger,
  chain: readChainTrigger,
};
/** The keys of each kind. */
export const triggerShapes: Readonly<Record<TriggerKind, Shape>> = {
  webhook: webhookTriggerShape,
  cron: cronTriggerShape,
  chain: chainTriggerShape,
};
export const triggerKindKey = oneOf(triggerKinds).describe('Decides which other keys apply');

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
    triggerKindKey,
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
  const selling = new Set(topUps.map(jobKey));
  const served = new Set(runners.flatMap(({ services }) => services));
  for (const [index, trigger] of triggers.entries()) {
    if (selling.has(jobKey(trigger)))
      report.mistake(['triggers', index], `job ${jobKey(trigger)} sells credit: only a payment can call it`);
    else if (!served.has(trigger.serviceId))
      report.warning(
        ['triggers', index],
        `no runner serves service ${trigger.serviceId}: the calls of "${trigger.name}" wait until one does`,
      );
  }
}

import type { RotatingSecret } from '../values/rotating-secret.ts';
import { z } from 'zod';
import { type JobId, jobKey } from '../values/job.ts';
import type { Path, Report } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { rotatingSecret } from './secret-source.ts';
import { ownSecretChars, readRotatingSecret } from './secrets.ts';
import { type ConfigOf, isTable, readTables, type Table } from './table.ts';
import { pushUrl } from './urls.ts';
import { oneOf, plainName, serviceId } from './values.ts';

export const runnerShape = {
  name: plainName.optional().describe('Name in logs; default `runner-1` and so on'),
  services: z
    .array(serviceId, 'must be an array of service ids')
    .min(1, 'must name at least one service')
    .refine((ids) => new Set(ids).size === ids.length, 'names a service twice')
    .describe('Services whose calls the runner gets'),
  mode: oneOf(['push', 'lease', 'jetstream']).describe(
    'Pushed to `url`, leased, or from the broker of `[jetstream]`',
  ),
  url: pushUrl.optional().describe('For `push` only, and required there'),
  token: rotatingSecret.describe("The runner's bearer token"),
} as const;

type RunnerTable = Table<typeof runnerShape>;

export interface RunnerConfig extends ConfigOf<typeof runnerShape> {
  /** Unique. */
  readonly name: string;
  /** The bearer tokens. */
  readonly tokens: RotatingSecret;
}

/** Reads `[[runners]]` and their tokens. Returns the whole ones; what is wrong with the others is reported. */
export async function readRunners(raw: unknown, reading: Reading): Promise<RunnerConfig[]> {
  const tables = readTables(runnerShape, raw, ['runners'], reading.report);
  const runners: RunnerConfig[] = [];
  const names = new Map<string, number>();
  for (const [index, table] of tables.entries()) {
    checkUrl(table, reading.report);
    const name = table.values.name ?? `runner-${index + 1}`;
    const earlier = names.get(name);
    if (earlier === undefined) names.set(name, index);
    else reading.report.mistake([...table.at, 'name'], `"${name}" is the name of runners[${earlier}] too`);
    const missing = 'is missing: say where it is, as "env:NAME" or "file:/path"';
    const tokens = await readRotatingSecret(table, 'token', { minChars: ownSecretChars, missing }, reading);
    if (table.whole !== undefined && tokens !== undefined) runners.push({ ...table.whole, name, tokens });
  }
  checkTokens(runners, reading.report);
  return runners;
}

/** The lease API recognises a runner only by its token. */
function checkTokens(runners: readonly RunnerConfig[], report: Report): void {
  const owners = new Map<string, string>();
  for (const { name, mode, tokens } of runners) {
    if (mode !== 'lease') continue;
    for (const token of tokens) {
      const owner = owners.get(token) ?? name;
      owners.set(token, owner);
      if (owner !== name)
        report.mistake(
          ['runners'],
          `${owner} and ${name} lease with the same token: the gateway could not tell them apart`,
        );
    }
  }
}

function checkUrl({ at, values, names }: RunnerTable, report: Report): void {
  if (values.mode === 'push' && !names('url')) report.mistake([...at, 'url'], 'is missing: push needs it');
  if (values.mode === 'lease' && names('url')) {
    report.mistake([...at, 'url'], 'would be ignored: a lease runner fetches its calls');
  }
  if (values.mode === 'jetstream' && names('url'))
    report.mistake(
      [...at, 'url'],
      'would be ignored: this runner takes its calls from the broker of [jetstream]',
    );
}

/**
 * Reports a runner of a service that has none, because something else serves its jobs: a runner gets all calls of its services. Reads the raw
 * tables, so that a mistake in a runner does not hide this one.
 * @param service undefined where it is a mistake itself
 */
export function checkUnserved(at: Path, service: number | undefined, raw: unknown, report: Report): void {
  if (service === undefined) return;
  const runners: readonly unknown[] = Array.isArray(raw) ? raw : [];
  for (const [index, runner] of runners.entries()) {
    const services: unknown = isTable(runner) ? runner['services'] : undefined;
    if (!Array.isArray(services) || !services.includes(BigInt(service))) continue;
    report.mistake(
      [...at, 'service_id'],
      `runners[${index}] serves service ${service} and would take these calls`,
    );
  }
}

/** What hinders a runner from executing calls of a job that no payment of that job makes; undefined where nothing does. */
export function createHindrances(
  topUps: readonly JobId[],
  runners: readonly { readonly services: readonly number[] }[],
): (job: JobId) => 'sells_credit' | 'unserved' | undefined {
  const selling = new Set(topUps.map(jobKey));
  const served = new Set(runners.flatMap(({ services }) => services));
  return (job) => {
    if (selling.has(jobKey(job))) return 'sells_credit';
    return served.has(job.serviceId) ? undefined : 'unserved';
  };
}

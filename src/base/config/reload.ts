import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { alertsShape } from './alerts.ts';
import { chatShape } from './chat.ts';
import type { Config, JobsConfig, RoutesConfig, RunnerConfig, TriggerConfig } from './config.ts';
import { identityShape } from './identity.ts';
import { logShape } from './log.ts';
import { formatPath, type Path } from './mistakes.ts';
import { plainShapes } from './plain-tables.ts';
import { gatewayShape, jobsShape, jobsTables, tables } from './root.ts';
import { runnerShape } from './runners.ts';
import { camelCase, isReloadable, type Shape } from './table.ts';
import { triggerShapes } from './triggers.ts';

/** The tables whose keys are compared one by one. A change in any other table is reported with the table's name. */
const shapes: Readonly<Record<string, Shape>> = {
  ...plainShapes,
  alerts: alertsShape,
  chat: chatShape,
  identity: identityShape,
  log: logShape,
};
const jobsKeys = { ...jobsShape, ...jobsTables };
const otherKeys = { ...gatewayShape, ...tables };

export interface ReloadedConfig {
  /** The reloadable keys of the new configuration; all others as they were at the start. */
  readonly config: Config;
  /** The TOML names of the keys that differ and require a restart. */
  readonly requireRestart: readonly string[];
}

/**
 * Applies a new configuration to the one that the process started with, as far as the keys are reloadable.
 * @throws if a feature would be switched off
 */
export function reloadConfig(started: Config, next: Config): ReloadedConfig {
  for (const feature of started.features)
    if (!next.features.includes(feature))
      throw new Error(`switching off the feature ${feature} requires a restart: nothing was changed`);
  const { jobs, chat } = started;
  const { identity, log } = started;
  const config: Config = {
    ...started,
    jobs:
      jobs &&
      next.jobs &&
      withAskedFacilitators(jobs, withServedRoutes(jobs, mergeTable(jobsKeys, jobs, next.jobs))),
    chat: chat && next.chat && mergeTable(chatShape, chat, next.chat),
    identity: identity && next.identity ? mergeTable(identityShape, identity, next.identity) : identity,
    log: log && next.log ? mergeTable(logShape, log, next.log) : log,
    runners: started.runners.map((runner) => withTokensOf(next.runners, runner)),
    triggers: started.triggers.map((trigger) => withSecretsOf(next.triggers, trigger)),
  };
  const jobsChanges = jobs && next.jobs ? changedKeys(jobsKeys, jobs, next.jobs, []) : [];
  const routeChanges = config.jobs?.routes === next.jobs?.routes ? [] : ['routes'];
  const facilitatorChanges = isDeepStrictEqual(facilitatorsOf(jobs), facilitatorsOf(next.jobs))
    ? []
    : ['facilitators'];
  return {
    config,
    requireRestart: [
      ...changedKeys(otherKeys, config, next, []),
      ...jobsChanges,
      ...routeChanges,
      ...facilitatorChanges,
    ],
  };
}

/** What listens for routes was made at the start: they stay as they were if more than their prices and tokens differs. */
function withServedRoutes(started: JobsConfig, next: JobsConfig): JobsConfig {
  if (isDeepStrictEqual(fixedParts(started.routes), fixedParts(next.routes))) return next;
  const jobPrices = new Map(next.jobPrices);
  for (const key of next.routes?.all.keys() ?? []) if (!started.routes?.all.has(key)) jobPrices.delete(key);
  for (const key of started.routes?.all.keys() ?? []) {
    const price = next.routes?.all.has(key) ? next.jobPrices.get(key) : started.jobPrices.get(key);
    if (price) jobPrices.set(key, price);
  }
  return { ...next, routes: started.routes, jobPrices };
}

function facilitatorsOf(jobs: JobsConfig | undefined): readonly unknown[] | undefined {
  return jobs?.facilitators.map(({ name, walletFactories }) => [name, walletFactories]);
}

/** The facilitators of the start with the tokens that they have in the new configuration. */
function withAskedFacilitators(started: JobsConfig, next: JobsConfig): JobsConfig {
  const facilitators = started.facilitators.map((one) => {
    const found = next.facilitators.find(({ name }) => name === one.name);
    return found ? { ...one, tokens: found.tokens } : one;
  });
  return { ...next, facilitators };
}

function fixedParts(routes: RoutesConfig | undefined): unknown {
  if (!routes) return undefined;
  const all = [...routes.all].map(([key, route]) => [key, { ...route, price: undefined, tokens: undefined }]);
  return { ...routes, all };
}

/** A runner of the start with the tokens that it has in the new configuration. */
function withTokensOf(runners: readonly RunnerConfig[], started: RunnerConfig): RunnerConfig {
  const next = runners.find(({ name }) => name === started.name);
  return next ? mergeTable(runnerShape, started, next) : started;
}

/** A trigger of the start with the secrets that it has in the new configuration. */
function withSecretsOf(triggers: readonly TriggerConfig[], started: TriggerConfig): TriggerConfig {
  const next = triggers.find(({ name, kind }) => name === started.name && kind === started.kind);
  // the RPC of its chain is followed from the start
  const shape = { ...triggerShapes[started.kind], rpc_url: z.unknown() };
  return next ? mergeTable(shape, started, next) : started;
}

function mergeTable<T extends object>(shape: Shape, started: T, next: T): T {
  const names = fixedKeys(shape).map(camelCase);
  const kept = names.filter((name) => Object.hasOwn(started, name));
  return { ...next, ...Object.fromEntries(kept.map((name) => [name, Reflect.get(started, name)])) };
}

function fixedKeys(shape: Shape): string[] {
  return Object.entries(shape).flatMap(([key, schema]) => (isReloadable(schema) ? [] : [key]));
}

/** The keys that differ and are not reloadable. */
function changedKeys(shape: Shape, started: object, next: object, at: Path): string[] {
  return fixedKeys(shape).flatMap((key) => {
    const [before, after]: unknown[] = [started, next].map((table) => Reflect.get(table, camelCase(key)));
    if (isDeepStrictEqual(before, after)) return [];
    const inner = at.length === 0 ? shapes[key] : undefined;
    if (inner && isObject(before) && isObject(after)) return changedKeys(inner, before, after, [key]);
    return [formatPath([...at, key])];
  });
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

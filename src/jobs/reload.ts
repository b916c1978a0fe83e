import { isDeepStrictEqual } from 'node:util';
import type { JobsConfig } from '../config/config.ts';
import { canonicalJson } from '../domain/values/canonical-json.ts';
import type { LedgerEvent } from '../domain/events/event.ts';
import { sha256 } from '../domain/payments/payment.ts';
import { optionJson } from '../domain/payments/quote.ts';
import type { Catalog } from './catalog.ts';

/** What a reload puts in force; everything else of a configuration is read once, at the start. */
const reloaded = [
  'tokens',
  'policies',
  'prices',
  'defaultInvocationMode',
  'quoteTtlSecs',
  'maxTimeoutSecs',
  'maxSignatureTtlSecs',
  'paymentIdentifier',
  'confirm',
  'confirmTimeoutMs',
  'networks',
] as const satisfies readonly (keyof JobsConfig)[];

/** The settings of `next` as far as they can change under way, over those of `present`. */
export function mergeSettings(
  present: JobsConfig,
  next: JobsConfig,
): { settings: JobsConfig; wantsRestart: readonly string[] } {
  const fresh = Object.fromEntries(reloaded.map((key) => [key, next[key]]));
  const wantsRestart = Object.entries(present)
    .filter(([key]) => !reloaded.some((name) => name === key))
    .filter(([key, value]) => !isDeepStrictEqual(value, Reflect.get(next, key)))
    .map(([key]) => key);
  return { settings: { ...present, ...fresh }, wantsRestart };
}

/** A reload as it stands in the operator's stream: finance sees when prices changed. */
export function reloadEvent(catalog: Catalog): LedgerEvent {
  return {
    type: 'operator_config_loaded',
    data: { jobs: catalog.size, catalog_sha256: catalogHash(catalog) },
  };
}

/** What is sold, as one hash: equal where every price, mode and option is. */
function catalogHash(catalog: Catalog): string {
  const jobs = [...catalog]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, job]) => [key, job.mode, String(job.priceWei), job.options.map(optionJson)]);
  return sha256(canonicalJson(jobs));
}

import { isDeepStrictEqual } from 'node:util';
import type { X402Config } from '../config/config.ts';
import { canonicalJson } from '../domain/canonical-json.ts';
import type { LedgerEvent } from '../domain/event.ts';
import { sha256 } from '../domain/payment.ts';
import { optionJson } from '../domain/quote.ts';
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
] as const satisfies readonly (keyof X402Config)[];

/** The settings of `next` as far as they can change under way, over those of `present`. */
export function mergeSettings(
  present: X402Config,
  next: X402Config,
): { settings: X402Config; wantsRestart: readonly string[] } {
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

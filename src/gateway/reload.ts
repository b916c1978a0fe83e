import { isDeepStrictEqual } from 'node:util';
import type { Config, X402Config } from '../config/config.ts';
import { canonicalJson } from '../domain/canonical-json.ts';
import type { LedgerEvent } from '../domain/event.ts';
import { sha256 } from '../domain/payment.ts';
import { optionJson } from '../domain/quote.ts';
import type { Catalog } from './catalog.ts';
import type { Gateway } from './gateway.ts';

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
  present: Config,
  next: Config,
): { settings: X402Config; wantsRestart: readonly string[] } {
  if (!present.x402 || !next.x402) throw new Error('both configurations must have the feature x402');
  const fresh = Object.fromEntries(reloaded.map((key) => [key, next.x402?.[key]]));
  const settings = { ...present.x402, ...fresh };
  const fixed = withoutReloaded(present, present.x402);
  const asked = withoutReloaded(next, next.x402);
  const wantsRestart = Object.entries(fixed)
    .filter(([key, value]) => key !== 'file' && !isDeepStrictEqual(value, Reflect.get(asked, key)))
    .map(([key]) => key);
  return { settings, wantsRestart };
}

/** All that is read once, at the start: whatever is not named above. */
function withoutReloaded(config: Config, x402: X402Config): Record<string, unknown> {
  const kept = Object.entries(x402).filter(([key]) => !reloaded.some((name) => name === key));
  const rest = Object.entries(config).filter(([key]) => key !== 'x402');
  return Object.fromEntries([...rest, ...kept]);
}

/** Writes a reload, or the refusal of one, into the operator's stream: finance sees when prices changed. */
export async function recordReload(
  gateway: Gateway,
  result: { readonly loaded: true } | { readonly loaded: false; readonly mistakes: number },
): Promise<void> {
  const event: LedgerEvent = result.loaded
    ? {
        type: 'operator_config_loaded',
        data: { jobs: gateway.catalog.size, catalog_sha256: catalogHash(gateway.catalog) },
      }
    : { type: 'operator_config_refused', data: { mistakes: result.mistakes } };
  await gateway.lane.append({ stream: 'operator:config', events: [event] });
}

/** What is sold, as one hash: equal where every price, mode and option is. */
function catalogHash(catalog: Catalog): string {
  const jobs = [...catalog]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, job]) => [key, job.mode, String(job.priceWei), job.options.map(optionJson)]);
  return sha256(canonicalJson(jobs));
}

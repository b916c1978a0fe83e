import { canonicalJson } from '../../base/values/canonical-json.ts';
import type { LedgerEvent } from '../../ledger/rules/event.ts';
import { sha256 } from '../../base/values/sha256.ts';
import { optionJson } from '../../payments/rules/quote.ts';
import type { Config } from '../../base/config/config.ts';
import { reloadConfig } from '../../base/config/reload.ts';
import type { JobsContext } from './context.ts';
import { type Catalog, type Job, modeOf } from './catalog.ts';

/** More are counted alone: the event of a large catalog must not become large. */
const mostChanges = 50;

/** The event of a reload in the operator's stream, which shows finance when prices changed, and which. */
export function reloadEvent(catalog: Catalog, before: Catalog): LedgerEvent {
  const changes = changesOf(catalog, before);
  const more = changes.length - mostChanges;
  return {
    type: 'operator_config_loaded',
    data: {
      jobs: catalog.size,
      catalog_sha256: catalogHash(catalog),
      ...(changes.length > 0 && { changes: changes.slice(0, mostChanges) }),
      ...(more > 0 && { more_changes: more }),
    },
  };
}

/** What a reload of this configuration would sell otherwise than now. */
export function previewReload(
  { catalog, config }: Pick<JobsContext, 'catalog' | 'config'>,
  next: Config,
): ReturnType<typeof changesOf> {
  const { jobs } = reloadConfig(config, next).config;
  if (!jobs) return [];
  const sold = [...jobs.jobPrices].map(([key, { wei: priceWei, inUsd }]): [string, Sold] => {
    const [serviceId, jobIndex] = key.split('/').map(Number) as [number, number];
    return [key, { serviceId, jobIndex, mode: modeOf(jobs, key), priceWei, inUsd }];
  });
  return changesOf(new Map(sold), catalog);
}

/** What of a job counts as a change. */
type Sold = Pick<Job, 'serviceId' | 'jobIndex' | 'mode' | 'priceWei' | 'inUsd'>;

/** The jobs whose mode or price differs, those that are new or gone among them. Prices in tokens follow rates, and do not count as changes. */
function changesOf(catalog: ReadonlyMap<string, Sold>, before: ReadonlyMap<string, Sold>) {
  const keys = new Set([...catalog.keys(), ...before.keys()]);
  return [...keys].toSorted().flatMap((key) => {
    const [was, now] = [before.get(key), catalog.get(key)];
    const job = now ?? was;
    if (!job || (was && now && isSoldAs(was, now))) return [];
    const { serviceId: service_id, jobIndex: job_index } = job;
    return [{ service_id, job_index, ...(was && { was: soldAs(was) }), ...(now && { now: soldAs(now) }) }];
  });
}

function isSoldAs(was: Sold, now: Sold): boolean {
  return was.mode === now.mode && was.priceWei === now.priceWei && was.inUsd === now.inUsd;
}

function soldAs({ mode, priceWei, inUsd }: Sold) {
  return { mode, price_wei: String(priceWei), ...(inUsd && { in_usd: true as const }) };
}

/** What is sold, as one hash: equal where every price, mode and option is. */
function catalogHash(catalog: Catalog): string {
  const jobs = [...catalog]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, job]) => [key, soldAs(job), job.options.map(optionJson)]);
  return sha256(canonicalJson(jobs));
}

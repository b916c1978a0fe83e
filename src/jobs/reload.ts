import { canonicalJson } from '../domain/values/canonical-json.ts';
import type { LedgerEvent } from '../domain/events/event.ts';
import { sha256 } from '../domain/payments/payment.ts';
import { optionJson } from '../domain/payments/quote.ts';
import type { Catalog } from './catalog.ts';

/** The event of a reload in the operator's stream, which shows finance when prices changed. */
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

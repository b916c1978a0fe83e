import type { Report } from './report.ts';
import { type ConfigOf, readTable } from './table.ts';
import { secureBaseUrl } from './urls.ts';
import { wholeNumber } from './values.ts';

export const discoveryShape = {
  /** Of the discovery service: `/discovery/resources` is appended. */
  url: secureBaseUrl,
  every_secs: wholeNumber(60, 86_400).default(3_600),
  /** How long a listing may be missing, or the service silent, before the operator is alerted. */
  grace_secs: wholeNumber(0, 2_592_000).default(7_200),
  /** A longer list says nothing about what is not on its first pages. */
  max_pages: wholeNumber(1, 10_000).default(500),
  /** Of one page. */
  timeout_ms: wholeNumber(1, 60_000).default(10_000),
  look_timeout_secs: wholeNumber(1, 3_600).default(300),
} as const;

/** The discovery service that is watched for our own listings. */
export type DiscoveryConfig = ConfigOf<typeof discoveryShape>;

/** Reads `[discovery]`; undefined where the table is missing, or after a report. */
export function readDiscovery(raw: unknown, report: Report): DiscoveryConfig | undefined {
  return raw === undefined ? undefined : readTable(discoveryShape, raw, ['discovery'], report).whole;
}

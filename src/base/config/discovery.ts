import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import { type ConfigOf, readTable } from './table.ts';
import { secureBaseUrl } from './urls.ts';
import { wholeNumber } from './values.ts';

export const discoveryShape = {
  url: secureBaseUrl.describe('Of the discovery service: `/discovery/resources` is appended'),
  max_pages: wholeNumber(1, 10_000)
    .default(500)
    .describe('Pages of one look: a longer list says nothing about what is not on its first pages'),
  look_timeout_secs: wholeNumber(1, 3_600).default(300).describe('The time limit of one look'),
  grace_secs: wholeNumber(0, 2_592_000)
    .default(7_200)
    .describe('How long a listing may be missing, or the service silent, before the operator is alerted'),
} as const;

/** The discovery service that is watched for our own listings. */
export type DiscoveryConfig = ConfigOf<typeof discoveryShape> & Constants['discovery'];

/** Reads `[discovery]`; undefined where the table is missing, or after a report. */
export function readDiscovery(raw: unknown, { report, constants }: Reading): DiscoveryConfig | undefined {
  if (raw === undefined) return undefined;
  const { whole } = readTable(discoveryShape, raw, ['discovery'], report);
  return whole && { ...whole, ...constants.discovery };
}

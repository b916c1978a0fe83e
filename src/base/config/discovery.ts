import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import { type ConfigOf, readTable } from './table.ts';
import { secureBaseUrl } from './urls.ts';

export const discoveryShape = {
  url: secureBaseUrl.describe('`/discovery/resources` is appended'),
} as const;

/** The discovery service that is watched for our own listings. */
export type DiscoveryConfig = ConfigOf<typeof discoveryShape> & Constants['discovery'];

/** Reads `[discovery]`; undefined if the table is missing, or after a report. */
export function readDiscovery(raw: unknown, { report, constants }: Reading): DiscoveryConfig | undefined {
  if (raw === undefined) return undefined;
  const { whole } = readTable(discoveryShape, raw, ['discovery'], report);
  return whole && { ...whole, ...constants.discovery };
}

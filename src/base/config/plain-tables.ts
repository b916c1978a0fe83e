import { z } from 'zod';
import type { Constants } from './constants.ts';
import type { Reading } from './reading.ts';
import { type ConfigOf, readTable } from './table.ts';
import { secureBaseUrl } from './urls.ts';
import { matching, wholeNumber } from './values.ts';

const mebibyte = 1_048_576;
const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const host = matching(
  new RegExp(String.raw`^(?:\*\.)?${label}(?:\.${label})*$`),
  'must be a host in lower case, such as "hooks.example", or "*.example" for those below it',
);

/** Tables that need no check beyond the schemas of their keys. */
export const plainShapes = {
  limits: {
    max_body_bytes: wholeNumber(1, 64 * mebibyte)
      .default(mebibyte)
      .describe('Largest body of a job request'),
    requests_per_minute: wholeNumber(0, 1_000_000)
      .default(600)
      .describe('Requests without a settlement or completion; 0: no limit'),
    max_outstanding_calls: wholeNumber(1, 100_000_000)
      .default(10_000)
      .describe('Paid calls that wait or are with a runner; triggers have as many more'),
  },
  delivery: {
    timeout_ms: wholeNumber(1, 3_600_000).default(30_000).describe('Time limit of a push'),
    max_call_age_secs: wholeNumber(60, 31_536_000)
      .default(604_800)
      .describe('Age since enqueue or requeue at which an uncompleted call is a dead letter'),
    concurrency_per_runner: wholeNumber(1, 10_000)
      .default(32)
      .describe('Simultaneous pushes of a gateway to a runner'),
  },
  /** How long data outside the ledger is kept. What has no period here has a constant one, in the constants or in the worker that deletes it. */
  retention: {
    results_days: wholeNumber(1, 36_500)
      .default(30)
      .describe(
        'Results of calls, from when they were stored; callbacks, from when they were named; reasons of refund requests',
      ),
  },
  callbacks: {
    allowed_hosts: z
      .array(host, 'must be an array of hosts')
      .min(1, 'must name a host')
      .optional()
      .describe('Hosts that may be called; default: any public host'),
  },
  discovery: {
    url: secureBaseUrl.describe('`/discovery/resources` is appended'),
  },
} as const;

type Shapes = typeof plainShapes;
/** The keys of a plain table and its constants. */
type Plain<Name extends keyof Shapes> = ConfigOf<Shapes[Name]> & Constants[Name];

export type LimitsConfig = Plain<'limits'>;
export type RetentionConfig = Plain<'retention'>;
/** Whether and how clients are called once the end of a paid call is known. */
export type CallbacksConfig = Plain<'callbacks'>;
/** The discovery service that is watched for our own listings. */
export type DiscoveryConfig = Plain<'discovery'>;
export interface DeliveryConfig extends Plain<'delivery'> {
  /** Of a push: it ends after the time limit, so that no call is pushed twice. */
  readonly leaseSecs: number;
}

/** Reads a table that has no other checks; undefined if it is missing, or after a report. */
export function readPlain<Name extends keyof Shapes>(
  name: Name,
  raw: unknown,
  { report, constants }: Pick<Reading, 'report' | 'constants'>,
): Plain<Name> | undefined {
  if (raw === undefined) return undefined;
  const { whole } = readTable<Shapes[Name]>(plainShapes[name], raw, [name], report);
  return whole && { ...whole, ...constants[name] };
}

/** Reads `[delivery]`; undefined after a report. */
export function readDelivery(
  raw: unknown,
  reading: Pick<Reading, 'report' | 'constants'>,
): DeliveryConfig | undefined {
  const whole = readPlain('delivery', raw ?? {}, reading);
  return whole && { ...whole, leaseSecs: Math.ceil(whole.timeoutMs / 1_000) + whole.leaseMarginSecs };
}

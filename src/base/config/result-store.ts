import { minBucketSecretChars, placeShape, readBucket } from './bucket.ts';
import { besideConfig } from './files.ts';
import type { Reading } from './reading.ts';
import { readSecret } from './secrets.ts';
import { readTable, type Table } from './table.ts';
import { oneOf, wholeNumber } from './values.ts';

const mebibyte = 1_048_576;

export const resultStoreShape = {
  kind: oneOf(['folder', 's3']).describe(
    'Where results go that are larger than max_result_bytes of [delivery]',
  ),
  max_bytes: wholeNumber(1, 1_024 * mebibyte)
    .default(100 * mebibyte)
    .describe('Of one result; up to `max_result_bytes` of `[delivery]` the database has it'),
  ...placeShape,
} as const;

type ResultStoreTable = Table<typeof resultStoreShape>;

/** Where results go that are too large for the database. */
export type ResultStoreConfig = { readonly maxBytes: number } & (
  | { readonly kind: 'folder'; readonly folder: string }
  | {
      readonly kind: 's3';
      readonly endpoint: string;
      readonly bucket: string;
      readonly prefix: string;
      readonly region: string;
      readonly accessKeyId: string;
      readonly secretKey: string;
    }
);

/** Reads `[result_store]` and its secret; undefined where the table is missing, or after a report. */
export async function readResultStore(
  raw: unknown,
  reading: Reading,
): Promise<ResultStoreConfig | undefined> {
  if (raw === undefined) return undefined;
  const table = readTable(resultStoreShape, raw, ['result_store'], reading.report);
  checkKeys(table, reading);
  const secretKey = await readSecret(table, 'secret', { minChars: minBucketSecretChars }, reading);
  if (!table.whole) return undefined;
  const { kind, maxBytes, location, region, accessKeyId } = table.whole;
  if (location === undefined) return undefined;
  if (kind === 'folder') return { kind, maxBytes, folder: besideConfig(reading.file, location) };
  const bucket = readBucket(location, [...table.at, 'location'], reading.report);
  if (bucket === undefined || accessKeyId === undefined || secretKey === undefined) return undefined;
  return { kind, maxBytes, ...bucket, region, accessKeyId, secretKey };
}

const keysOf = { folder: ['location'], s3: ['location', 'access_key_id', 'secret'] } as const;
const takenBy = { folder: [], s3: ['region'] } as const;

function checkKeys({ at, values: { kind }, names }: ResultStoreTable, { report }: Reading): void {
  if (kind === undefined) return;
  for (const key of keysOf[kind])
    if (!names(key)) report.mistake([...at, key], `is missing: ${kind} needs it`);
  const known = new Set<string>(['kind', 'max_bytes', ...keysOf[kind], ...takenBy[kind]]);
  for (const key of Object.keys(resultStoreShape) as (keyof typeof resultStoreShape)[])
    if (names(key) && !known.has(key)) report.mistake([...at, key], `would be ignored: ${kind} has none`);
}

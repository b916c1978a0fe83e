import { type Bucket, minBucketSecretChars, placeShape, readBucket, readBucketKey } from './bucket.ts';
import { besideConfig } from './files.ts';
import type { Reading } from './reading.ts';
import { readSecret } from './secrets.ts';
import { readTable, type Table } from './table.ts';
import { filePath, wholeNumber } from './values.ts';

const mebibyte = 1_048_576;

export const resultStoreShape = {
  max_bytes: wholeNumber(1, 1_024 * mebibyte)
    .default(100 * mebibyte)
    .describe('Largest result; the database stores those up to 1 MiB'),
  ...placeShape,
  location: filePath
    .meta({ type: 'path, or https URL' })
    .describe('A folder, or `https://HOST/BUCKET/PREFIX` of an S3-compatible store'),
} as const;

type ResultStoreTable = Table<typeof resultStoreShape>;

/** Where results go that are too large for the database. */
export type ResultStoreConfig = { readonly maxBytes: number } & (
  | { readonly kind: 'folder'; readonly folder: string }
  | Bucket
);

/** Reads `[result_store]` and its secret; undefined if the table is missing, or after a report. */
export async function readResultStore(
  raw: unknown,
  reading: Reading,
): Promise<ResultStoreConfig | undefined> {
  if (raw === undefined) return undefined;
  const table = readTable(resultStoreShape, raw, ['result_store'], reading.report);
  const { at, values, whole } = table;
  const isBucket = /^[a-z]+:\/\//i.test(values.location ?? '');
  if (values.location !== undefined) checkKeys(table, isBucket, reading);
  const key = await readSecret(table, 'secret', { minChars: minBucketSecretChars }, reading);
  if (!whole) return undefined;
  const { maxBytes, location, region } = whole;
  if (!isBucket) return { kind: 'folder', maxBytes, folder: besideConfig(reading.file, location) };
  const bucket = readBucket(location, [...at, 'location'], reading.report);
  const keys = key === undefined ? undefined : readBucketKey(key, [...at, 'secret'], reading);
  return bucket && keys && { kind: 's3', maxBytes, ...bucket, region, ...keys };
}

function checkKeys({ at, names }: ResultStoreTable, isBucket: boolean, { report }: Reading): void {
  if (isBucket && !names('secret')) report.mistake([...at, 'secret'], 'is missing: a bucket needs it');
  for (const key of isBucket ? [] : (['region', 'secret'] as const))
    if (names(key)) report.mistake([...at, key], 'would be ignored: a folder does not have this key');
}

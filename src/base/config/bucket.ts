import type { Path, Report } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { secret } from './secret-source.ts';
import { readValue } from './table.ts';
import { secureBaseUrl } from './urls.ts';
import { filePath, matching, text, Wrong } from './values.ts';

/** The keys of a table that copies something into a folder or into a bucket of an S3-compatible store. */
export const placeShape = {
  location: filePath
    .optional()
    .meta({ type: 'path, or https URL' })
    .describe('Folder: path; S3: `https://HOST/BUCKET/PREFIX`; webhook: address'),
  region: matching(/^[a-z0-9-]{1,64}$/, 'must be of a-z, 0-9 and "-"')
    .default('us-east-1')
    .describe('S3: region'),
  secret: secret.describe(
    'S3: `ACCESS_KEY_ID:SECRET`; webhook: signs messages; chain: private key that pays the gas',
  ),
} as const;

export const minBucketSecretChars = 16;

/** The access key of a store. */
interface BucketKey {
  readonly accessKeyId: string;
  readonly secretKey: string;
}

/** A bucket of an S3-compatible store. */
export interface BucketPlace {
  /** Without a path. */
  readonly endpoint: string;
  readonly bucket: string;
  /** Begins the names of all objects. */
  readonly prefix: string;
}

/** A bucket, and what opens it. */
export interface Bucket extends BucketPlace, BucketKey {
  readonly kind: 's3';
  readonly region: string;
}

const bucketUrl = text((raw): BucketPlace | Wrong => {
  const [, endpoint = '', bucket = '', prefix = ''] = /^([a-z]+:\/\/[^/]+)\/([^/]+)\/?(.*)$/i.exec(raw) ?? [];
  const base = secureBaseUrl.safeParse(endpoint === '' ? raw : endpoint);
  if (!base.success) return new Wrong(base.error.issues[0]?.message ?? 'is not an https URL');
  const isNamed = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket);
  if (isNamed && /^[A-Za-z0-9._/-]{0,200}$/.test(prefix)) return { endpoint: base.data, bucket, prefix };
  return new Wrong(
    'must be https://HOST/BUCKET or https://HOST/BUCKET/PREFIX: 3 to 63 of a-z, 0-9, "." and "-"',
  );
});

/** Reads the location of a bucket; undefined after a report. */
export function readBucket(location: string, at: Path, report: Report): BucketPlace | undefined {
  return readValue(bucketUrl, location, at, report)?.value;
}

/** Reads the secret of a bucket; undefined after a report, which does not contain it. */
export function readBucketKey(
  secretText: string,
  at: Path,
  { report, skippedSecrets }: Reading,
): BucketKey | undefined {
  const [, accessKeyId, secretKey = ''] = /^([^:]{1,256}):(.+)$/.exec(secretText) ?? [];
  if (accessKeyId !== undefined && secretKey.length >= minBucketSecretChars)
    return { accessKeyId, secretKey };
  if (!skippedSecrets)
    report.mistake(
      at,
      `names a secret that must be ACCESS_KEY_ID:SECRET, of ${minBucketSecretChars} characters or more`,
    );
  return skippedSecrets && { accessKeyId: secretText, secretKey: secretText };
}

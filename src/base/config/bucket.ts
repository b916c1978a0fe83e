import { secret } from './secret-source.ts';
import { secureBaseUrl } from './urls.ts';
import { matching } from './values.ts';

const bucketName = matching(
  /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
  'must be a bucket: 3 to 63 of a-z, 0-9, "." and "-"',
);
const keyText = matching(/^[!-~]{1,256}$/, 'must be visible ASCII');

/** The keys of a table that names a bucket of an S3-compatible store. */
export const bucketShape = {
  endpoint: secureBaseUrl.optional(),
  bucket: bucketName.optional(),
  prefix: matching(/^[A-Za-z0-9._/-]{0,200}$/, 'must be of A-Z, a-z, 0-9, ".", "_", "/" and "-"').default(''),
  region: matching(/^[a-z0-9-]{1,64}$/, 'must be of a-z, 0-9 and "-"').default('us-east-1'),
  access_key_id: keyText.optional(),
  secret: secret,
} as const;

export const minBucketSecretChars = 16;

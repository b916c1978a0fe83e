import { expect, test } from 'vitest';
import { createS3 } from '../../../../src/base/peers/http/s3.ts';
import { bucketKeys, startBucket } from '../../../support/bucket.ts';

const keysTried = ['a/b.bin', 'a b/ä+%.bin'];

test.each(keysTried)('the body, the conditions and the range of %s are signed as AWS does', async (key) => {
  const bucket = await startBucket();
  const s3 = createS3({
    ...bucketKeys,
    endpoint: `${bucket.url}/below/`,
    bucket: 'results',
    region: 'eu-central-1',
    timeoutMs: 10_000,
  });
  const bytes = Buffer.from([0, 255, 128, 10, 13, 195]);
  expect(await s3.put(key, bytes, { kind: 'absent' })).toMatchObject({ status: 200 });
  expect(await s3.put(key, bytes, { kind: 'absent' })).toMatchObject({ status: 412 });
  expect(await s3.put(key, bytes, { kind: 'unchanged', etag: '"another"' })).toMatchObject({ status: 412 });
  expect(await s3.get(key)).toMatchObject({ status: 200, body: bytes });
  expect(await s3.get(key, { from: 1, maxBytes: 2 })).toMatchObject({
    status: 206,
    body: bytes.subarray(1, 3),
  });
  expect(await s3.remove(key)).toMatchObject({ status: 204 });
  await s3.close();
});

test('a bucket refuses a request that another secret has signed', async () => {
  const { url: endpoint } = await startBucket();
  const wrong = { accessKeyId: bucketKeys.accessKeyId, secretKey: 'another-secret-of-it' };
  const s3 = createS3({ ...wrong, endpoint, bucket: 'results', region: 'us-east-1', timeoutMs: 10_000 });
  expect(await s3.put('a', 'text', { kind: 'any' })).toMatchObject({ status: 403 });
  await s3.close();
});

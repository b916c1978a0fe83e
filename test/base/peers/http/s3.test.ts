import { expect, test } from 'vitest';
import { signV4 } from '../../../../src/base/peers/http/s3.ts';

test("the signature of Amazon's own example of a GET", () => {
  const headers = signV4(
    {
      method: 'GET',
      path: '/test.txt',
      query: '',
      headers: { host: 'examplebucket.s3.amazonaws.com', range: 'bytes=0-9' },
      body: '',
    },
    {
      accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
      secretKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
      region: 'us-east-1',
      service: 's3',
      at: new Date('2013-05-24T00:00:00Z'),
    },
  );
  expect(headers['authorization']).toBe(
    'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,' +
      'SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,' +
      'Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  );
});

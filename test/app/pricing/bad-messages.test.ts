import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { route, startPricing } from '../../support/pricing.ts';

const json = 'application/json';
const proto = 'application/proto';

async function refusal(
  type: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; text: string }> {
  const { url } = await startPricing();
  const init = { method: 'POST', body, headers: { 'content-type': type, ...headers } };
  const answer = await fetch(url + route, init);
  return { status: answer.status, text: await answer.text() };
}

const base64 = (length: number): string => Buffer.alloc(length, 1).toString('base64');

test.each([
  ['{"serviceId":"1","serviceId":"2"}', 'duplicate object key \\"serviceId\\"'],
  ['{"serviceId":"1","service_id":"2"}', 'service_id from JSON: set multiple times'],
  ['{"serviceId":"1","reqester":""}', 'key \\"reqester\\" is unknown'],
  ['{"serviceId":"1","__proto__":{"jobIndex":"5"}}', 'key \\"__proto__\\" is unknown'],
  ['{"serviceId":-1}', '-1 out of range'],
  ['{"serviceId":1.5}', 'expected bigint (uint64)'],
  ['{"serviceId":1e30}', '1e+30 out of range'],
  ['{"serviceId":"18446744073709551616"}', '18446744073709551616 out of range'],
  ['{"serviceId":9007199254740993}', 'service_id must be at most 9007199254740991'],
  ['{"serviceId":"1","jobIndex":4294967296}', 'job_index must be at most 4294967295'],
  [`{"serviceId":"1","requester":"${base64(19)}"}`, 'requester must have 20 bytes or none, not 19'],
  [`{"serviceId":"1","requester":"0x${'11'.repeat(20)}"}`, 'not 31 (JSON has them as base64)'],
  [`{"serviceId":"1","inputsHash":"${base64(33)}"}`, 'inputs_hash must have 32 bytes or none, not 33'],
  ['{"serviceId":"1","requester":"!"}', 'invalid base64 string'],
  ['[]', 'GetJobPriceRequest from JSON: Array(0)'],
  ['', 'Unexpected end of JSON input'],
  ['['.repeat(16_000), 'Unexpected end of JSON input'],
])('JSON that is not the message is refused with what is wrong: %.60s', async (body, words) => {
  expect(await refusal(json, body)).toEqual({ status: 400, text: expect.stringContaining(words) });
});

test.each([
  ['that ends in a number', [8, 255], 'premature EOF'],
  ['that ends in a field', [26, 200, 1], 'premature EOF'],
  ['with a number of more than 64 bits', [8, ...Array<number>(11).fill(255)], 'invalid varint'],
  ['with a field of number 0', [0], 'illegal tag'],
])('protobuf %s is refused', async (_, bytes, words) => {
  const refused = await refusal(proto, Uint8Array.from(bytes));
  expect(refused).toEqual({ status: 500, text: expect.stringContaining(words) });
});

/** An envelope of gRPC with its flags, the length that it claims, and its bytes. */
const envelope = (flags: number, length: number, ...bytes: number[]) =>
  Uint8Array.of(flags, ...Buffer.from(length.toString(16).padStart(8, '0'), 'hex'), ...bytes);
const one = [8, 1];

test.each([
  ['a frame that is cut off', envelope(0, 9, ...one), 3, 'incomplete envelope'],
  ['a frame of 4 GiB', envelope(0, 0xff_ff_ff_ff, ...one), 8, 'message size 4294967295 is larger'],
  [
    'two messages',
    Buffer.concat([envelope(0, 2, ...one), envelope(0, 2, ...one)]),
    12,
    'extra input message',
  ],
  ['no message', new Uint8Array(), 12, 'missing input message'],
  [
    'a compressed message that names no compression',
    envelope(1, 2, ...one),
    13,
    'do not know how to decompress',
  ],
] as [string, Uint8Array<ArrayBuffer>, number, string][])(
  '%s of gRPC is refused',
  async (_, bytes, code, words) => {
    const { text } = await refusal('application/grpc-web+proto', bytes);
    expect(decodeURIComponent(text)).toContain(words);
    expect(text).toContain(`grpc-status: ${code}`);
  },
);

test('a compressed message is refused without being decompressed', async () => {
  // 16 KB that would be 16 MB
  const bomb = gzipSync(Buffer.alloc(16_000_000));
  for (const type of [json, proto])
    expect(await refusal(type, bomb, { 'content-encoding': 'gzip' })).toEqual({
      status: 501,
      text: expect.stringContaining('unknown compression \\"gzip\\"'),
    });
  const framed = Buffer.concat([envelope(1, bomb.length), bomb]);
  const { text } = await refusal('application/grpc-web+proto', framed, { 'grpc-encoding': 'gzip' });
  expect(decodeURIComponent(text)).toContain('unknown compression "gzip"');
});

test.each([
  'text/plain',
  'application/json; charset=latin1',
  'application/connect+json',
  'multipart/form-data',
])('the content type %s is refused, and the answer lists the accepted ones', async (type) => {
  const text = expect.stringContaining('must be application/json, application/proto, application/grpc');
  expect(await refusal(type, '{"serviceId":"1"}')).toEqual({ status: 415, text });
});

test('another method and another path are refused with those that there are', async () => {
  const { url } = await startPricing();
  const wrongMethod = await fetch(url + route);
  expect([wrongMethod.status, await wrongMethod.text()]).toEqual([405, 'The method must be POST.\n']);
  const wrongPath = await fetch(url, { method: 'POST', body: 'x'.repeat(100_000) });
  expect([wrongPath.status, await wrongPath.text()]).toEqual([404, `There is only POST ${route}\n`]);
});

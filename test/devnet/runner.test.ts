import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EchoRunner, startEchoRunner } from '../../src/devnet/runner.ts';
import { signCall } from '../../src/base/values/call-signature.ts';

const secret = 'runner secret';
const id = `0x${'1'.repeat(64)}`;
const metadata = { 'x-x402-payer': '0xabc', 'x-net-job': '1/0' };

describe('the echo runner', () => {
  let runner: EchoRunner;
  beforeAll(async () => {
    runner = await startEchoRunner({ secret });
  });
  afterAll(() => runner.close());

  test('answers 401 to a call signed with another secret, and does not record it', async () => {
    const before = runner.calls.length;
    const response = await post(runner.url, Buffer.from('x'), 'another');
    expect(response.status).toBe(401);
    expect(runner.calls).toHaveLength(before);
  });
});

function post(url: string, body: Buffer, key: string): Promise<Response> {
  const signature = signCall({
    secret: key,
    id,
    timestampSecs: Math.floor(Date.now() / 1000),
    body,
    metadata,
  });
  return fetch(url, { method: 'POST', headers: { ...signature, ...metadata }, body: new Uint8Array(body) });
}

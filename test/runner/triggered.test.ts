import { describe, expect, test } from 'vitest';
import { signCall } from '../../src/base/values/call-signature.ts';
import { type Handler, job } from '../../src/runner/index.ts';
import { errorOf, keyOf, metadataOf, quoteDigest, runnerOf, secret } from './support.ts';

describe('a call that a trigger made', () => {
  test('has what a paid call has, with the name and id of its trigger instead of a payment', async () => {
    const received: unknown[] = [];
    const { push, calls } = runnerOf({
      jobs: [job({ serviceId: 1, jobIndex: 0, on: { webhook: (call) => void received.push(call) } })],
    });
    await push({ id: 42, attempt: 3, trigger: 'webhook' });
    const facts = {
      callId: 42,
      idempotencyKey: keyOf(42),
      attempt: 3,
      serviceId: 1,
      jobIndex: 0,
      trigger: 'webhook',
      triggerName: 'a-name',
    };
    expect(received).toEqual([
      {
        ...facts,
        triggerId: 'id-42',
        contentType: 'text/plain',
        body: Buffer.from('some text'),
        maxResultBytes: 1_048_576,
        input: undefined,
        progress: expect.any(Function) as () => void,
        signal: expect.any(AbortSignal) as AbortSignal,
      },
    ]);
    expect(calls).toMatchObject([{ ...facts, via: 'push', outcome: 'completed' }]);
  });

  test('is taken by one handler for several triggers, which tells them apart by their types', async () => {
    const seen: string[] = [];
    const any: Handler<undefined, 'x402' | 'cron'> = (call) =>
      void seen.push(call.trigger === 'x402' ? call.quoteDigest : call.triggerName);
    const { push } = runnerOf({ jobs: [job({ serviceId: 1, jobIndex: 0, on: { x402: any, cron: any } })] });
    await push({ id: 1 });
    await push({ id: 2, trigger: 'cron' });
    expect(seen).toEqual([quoteDigest, 'a-name']);
  });

  test.each<[string, Record<string, string>, readonly string[]]>([
    ['without its name', {}, ['x-net-trigger-name']],
    ['without its id', {}, ['x-net-trigger-id']],
    ['that says x402 too', { 'x-x402-origin': 'x402' }, []],
  ])('%s is refused as malformed', async (_, added, removed) => {
    const { runner, errors } = runnerOf({
      jobs: [job({ serviceId: 1, jobIndex: 0, on: { cron: () => 1, x402: () => 1 } })],
    });
    const metadata = Object.fromEntries(
      Object.entries({ ...metadataOf({ trigger: 'cron' }), ...added }).filter(
        ([name]) => !removed.includes(name),
      ),
    );
    const body = Buffer.from('');
    const timestampSecs = Math.floor(Date.now() / 1_000);
    const signature = signCall({ secret, id: keyOf(7), timestampSecs, body, metadata });
    const answer = await runner.handle({ headers: { ...metadata, ...signature }, body }, { secret });
    expect(errorOf(answer)).toEqual([400, 'call_malformed']);
    expect(errors.map(({ code }) => code)).toEqual(['call_malformed']);
  });
});

import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { putCallback, takeCallbacks } from '../../../src/calls/store/callbacks.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { header, quoteAndSign } from '../../support/payer.ts';
import { allowed, callTo, job, startReceiver } from './callbacks-support.ts';

const chain = useChain();

test('of each payer callbacks are taken in turn, at most eight of one, and none of one that has enough under way', async () => {
  const database = await createDatabase();
  const { pool } = database;
  const [tarpit, ...others] = ['1', '2', '3'].map((digit) => `0x${digit.repeat(40)}`);
  const put = async (of: string, count: number): Promise<void> => {
    for (let nth = 0; nth < count; nth++) {
      const name = {
        stream: `0x${randomBytes(32).toString('hex')}`,
        binding: `0x${'1'.repeat(64)}`,
      } as const;
      await putCallback(pool, name, 'https://hooks.example/', of);
    }
    await database.asOwner((owner) =>
      owner.query(
        `update tollbook.callback set due_at = tollbook.clock() - interval '1 second', seen_at = tollbook.clock(), seq = 1
         where due_at is null`,
      ),
    );
  };
  await put(tarpit ?? '', 110);
  for (const other of others) await put(other, 2);
  const payersOf = (taken: readonly { readonly payer: string | undefined }[]): unknown =>
    Object.fromEntries(
      [tarpit, ...others].map((one) => [one, taken.filter(({ payer: of }) => of === one).length]),
    );
  const [two, three] = others;
  expect(payersOf(await takeCallbacks(pool, 3))).toEqual({
    [tarpit ?? '']: 1,
    [two ?? '']: 1,
    [three ?? '']: 1,
  });
  expect(payersOf(await takeCallbacks(pool, 64))).toEqual({
    [tarpit ?? '']: 8,
    [two ?? '']: 1,
    [three ?? '']: 1,
  });
  expect(await takeCallbacks(pool, 64, [tarpit ?? ''])).toEqual([]);
  await put(two ?? '', 1);
  expect(payersOf(await takeCallbacks(pool, 64, [tarpit ?? '']))).toEqual({
    [tarpit ?? '']: 0,
    [two ?? '']: 1,
    [three ?? '']: 0,
  });
});

test('a gateway without public_url, on loopback, sends no callback to its own machine', async () => {
  const database = await createDatabase();
  const gateway = await startTestGateway({
    database,
    chain,
    loopbackWebhooks: false,
    tables: allowed,
    env: { OTHER_TOKEN: 'x'.repeat(32) },
  });
  const receiver = await startReceiver();
  const payment = await quoteAndSign(gateway, job, 'x');
  const request = { body: 'x', headers: { ...header(payment), ...callTo(receiver.url) } };
  expect(await gateway.post(job, request)).toMatchObject({
    status: 400,
    json: { code: 'invalid_callback_url' },
  });
});

import { expect, test } from 'vitest';
import { startDevnet } from '../../src/devnet/devnet.ts';
import { balanceOf } from '../../src/devnet/token.ts';
import { settle, signedPayment } from './pay.ts';
import { temporaryDir } from './killable.ts';

test('concurrent devnets use different ports, and each has its own balances', async () => {
  const devnets = await Promise.all([1, 2].map(() => startDevnet({ dir: temporaryDir() })));
  const urls = devnets.flatMap(({ rpcUrl, facilitatorUrl, runnerUrl, modelUpstreamUrl, apiUrl }) => [
    rpcUrl,
    facilitatorUrl,
    runnerUrl,
    modelUpstreamUrl,
    apiUrl,
  ]);
  expect(new Set(urls).size).toBe(10);
  const payments = await Promise.all(devnets.map(({ token }) => signedPayment(token, 9n)));
  for (const [index, { facilitatorUrl, rpcUrl, token, payTo }] of devnets.entries()) {
    const payment = payments[index];
    if (payment !== undefined) await settle(facilitatorUrl, payment);
    expect(await balanceOf(rpcUrl, token, payTo)).toBe(9n);
  }
  await Promise.all(devnets.map((devnet) => devnet.stop()));
});

test('a devnet that is started again keeps its data', async () => {
  const dir = temporaryDir();
  const ports = { chain: 0, facilitator: 0, runner: 0, model: 0, api: 0 };
  const first = await startDevnet({ dir, ports });
  const payment = await signedPayment(first.token, 9n);
  expect(await settle(first.facilitatorUrl, payment)).toMatchObject({ success: true });
  await first.stop();

  const second = await startDevnet({ dir, ports });
  expect(await balanceOf(second.rpcUrl, second.token, second.payTo)).toBe(9n);
  expect(await settle(second.facilitatorUrl, payment)).toMatchObject({
    success: false,
    errorReason: 'invalid_exact_evm_nonce_already_used',
  });
  await second.stop();
});

test('a configured port that is taken is an error', async () => {
  const ports = { chain: 0, facilitator: 0, runner: 0, model: 0, api: 0 };
  const devnet = await startDevnet({ dir: temporaryDir(), ports });
  const taken = Number(new URL(devnet.facilitatorUrl).port);
  await expect(startDevnet({ dir: temporaryDir(), ports: { ...ports, facilitator: taken } })).rejects.toThrow(
    'EADDRINUSE',
  );
  await devnet.stop();
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createTestClient, http, publicActions } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Devnet, startDevnet } from '../../src/devnet/devnet.ts';
import { balanceOf } from '../../src/devnet/token.ts';
import { settle, signedPayment } from './pay.ts';

describe("the devnet's facilitator", () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-test-'));
  let devnet: Devnet;
  beforeAll(async () => {
    devnet = await startDevnet({ dir, ports: { chain: 0, facilitator: 0, runner: 0 } });
  });
  afterAll(async () => {
    await devnet.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  /** What the payee holds more, and the payer less, after something was done. */
  async function moved(act: () => Promise<void>): Promise<bigint> {
    const before = await balanceOf(devnet.rpcUrl, devnet.token, devnet.payTo);
    await act();
    return (await balanceOf(devnet.rpcUrl, devnet.token, devnet.payTo)) - before;
  }

  test('lands a hundred concurrent settlements', async () => {
    const payments = await Promise.all(Array.from({ length: 100 }, () => signedPayment(devnet.token, 3n)));
    const total = await moved(async () => {
      const settled = await Promise.all(payments.map((payment) => settle(devnet.facilitatorUrl, payment)));
      expect(settled.filter(({ success }) => !success)).toEqual([]);
      expect(new Set(settled.map(({ transaction }) => transaction)).size).toBe(100);
    });
    expect(total).toBe(300n);
  });

  test('makes one transfer for one payment that is settled five times concurrently', async () => {
    const payment = await signedPayment(devnet.token, 11n);
    const total = await moved(async () => {
      const settled = await Promise.all([1, 2, 3, 4, 5].map(() => settle(devnet.facilitatorUrl, payment)));
      expect(settled.filter(({ success }) => success)).toHaveLength(1);
    });
    expect(total).toBe(11n);
  });

  test('settles the other payments when one of them fails', async () => {
    const spent = await signedPayment(devnet.token, 5n);
    await settle(devnet.facilitatorUrl, spent);
    const payments = [await signedPayment(devnet.token, 5n), spent, await signedPayment(devnet.token, 5n)];
    const settled = await Promise.all(payments.map((payment) => settle(devnet.facilitatorUrl, payment)));
    expect(settled.map(({ success }) => success)).toEqual([true, false, true]);
    expect(settled[1]).toMatchObject({
      errorReason: 'invalid_exact_evm_nonce_already_used',
      transaction: '',
    });
  });

  test('settles payments after the chain was rolled back', async () => {
    const chain = createTestClient({ mode: 'anvil', transport: http(devnet.rpcUrl) }).extend(publicActions);
    const snapshot = await chain.snapshot();
    const payment = await signedPayment(devnet.token, 5n);
    expect(await settle(devnet.facilitatorUrl, payment)).toMatchObject({ success: true });
    await chain.revert({ id: snapshot });
    expect(
      await moved(async () =>
        expect(await settle(devnet.facilitatorUrl, payment)).toMatchObject({ success: true }),
      ),
    ).toBe(5n);
  });

  test.each([
    ['a body that is not JSON', '{"paymentPayload":', 400],
    ['a body that is not a payment', '{"paymentPayload":{}}', 400],
    ['a body that is too long', JSON.stringify('x'.repeat(64 * 1024)), 413],
  ])('refuses %s', async (_, body, status) => {
    const response = await fetch(`${devnet.facilitatorUrl}/settle`, { method: 'POST', body });
    expect(response.status).toBe(status);
  });
});

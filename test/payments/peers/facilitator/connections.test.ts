import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createFacilitator,
  type FacilitatorOptions,
} from '../../../../src/payments/peers/facilitator/facilitator.ts';

const request = { x402Version: 2, paymentPayload: { a: 1 }, paymentRequirements: { b: '2' } } as const;
const payer = `0x${'ab'.repeat(20)}`;
const transaction = `0x${'c'.repeat(64)}`;
const network = 'eip155:84532';

async function serve(answer: (response: ServerResponse) => unknown, options?: Partial<FacilitatorOptions>) {
  const server = createServer((_, response) => void answer(response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const facilitator = createFacilitator({
    url,
    verifyTimeoutMs: 60_000,
    settleTimeoutMs: 60_000,
    ...options,
  });
  onTestFinished(async () => {
    server.close().closeAllConnections();
    await facilitator.close();
  });
  return facilitator;
}

/** A facilitator that answers once it has `count` payments at once, and the most that it had. */
async function holding(count: number, options?: Partial<FacilitatorOptions>) {
  const held: ServerResponse[] = [];
  let most = 0;
  const facilitator = await serve((response) => {
    most = Math.max(most, held.push(response));
    if (held.length < count) return;
    for (const one of held.splice(0)) one.end(JSON.stringify({ isValid: true, payer }));
  }, options);
  return { facilitator, most: () => most };
}

describe('connections', () => {
  test('are as many as payments wait for the facilitator: 300 reach it although it has answered none', async () => {
    const { facilitator, most } = await holding(300);
    const answers = await Promise.all(Array.from({ length: 300 }, () => facilitator.verify(request)));
    expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['valid']));
    expect(most()).toBe(300);
  });

  test('are never more than the bound: the next payment waits for one that is free', async () => {
    const { facilitator, most } = await holding(2, { connections: 2 });
    const answers = await Promise.all(Array.from({ length: 6 }, () => facilitator.verify(request)));
    expect(answers).toHaveLength(6);
    expect(most()).toBe(2);
  });
});

test('how long settling takes follows what settled, and not what failed', async () => {
  let success = true;
  let waitMs = 0;
  const facilitator = await serve((response) => {
    const answer = success
      ? { success, transaction, network, payer }
      : { success, errorReason: 'insufficient_funds', transaction: '', network };
    setTimeout(() => response.end(JSON.stringify(answer)), waitMs);
  });
  expect(facilitator.typicalSettleMs()).toBe(0);
  waitMs = 80;
  await facilitator.settle(request);
  const afterOne = facilitator.typicalSettleMs();
  expect(afterOne).toBeGreaterThanOrEqual(79 / 8);
  success = false;
  await facilitator.settle(request);
  expect(facilitator.typicalSettleMs()).toBe(afterOne);
});

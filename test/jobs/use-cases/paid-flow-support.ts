import { expect } from 'vitest';
import { startEchoRunner } from '../../../src/devnet/runner.ts';
import { createDatabase } from '../../support/database.ts';
import type { TestChain } from '../../support/devnet.ts';
import { payTo, runnerSecret, startTestGateway } from '../../support/gateway.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { payFor } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

export const job = '/x402/jobs/1/0';
export const price = 3_264_000n;

export async function echoRunner() {
  const runner = await startEchoRunner({ secret: runnerSecret, port: 0 });
  return { ...runner, [Symbol.asyncDispose]: () => runner.close() };
}

/** Makes so many different payments at once, and returns how many calls ran: each is one transfer, and the ledger is sound. */
export async function payAtOnce(chain: TestChain, count: number): Promise<number> {
  const database = await createDatabase();
  await using runner = await echoRunner();
  const gateway = await startTestGateway({ database, chain, runnerUrl: runner.url });
  const before = await chain.balance(payTo);
  const answers = await Promise.all(
    Array.from({ length: count }, (_, i) => payFor(gateway, job, `body ${i}`)),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
  expect(new Set(answers.map(({ json }) => json.call_id)).size).toBe(count);
  expect(new Set(answers.map(({ json }) => json.payment.transaction)).size).toBe(count);
  expect((await chain.balance(payTo)) - before).toBe(BigInt(count) * price);
  await eventually(async () =>
    expect((await gateway.get('/x402/stats')).json.counters.completed).toBe(count),
  );
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  return new Set(runner.calls.map(({ body }) => body.toString())).size;
}

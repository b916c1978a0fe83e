import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { createTestClient, http } from 'viem';
import { expect, onTestFinished } from 'vitest';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { prepaidContractAddress } from '../../src/devnet/prepaid-contract.ts';
import { type SpendAuth, spendAuthHash } from '../../src/accounts/rules/spend/spend-auth.ts';
import { createPrepaidContract, type CreditsAnswer } from '../../src/chat/peers/prepaid/prepaid-contract.ts';
import { followPayout } from '../../src/chat/use-cases/spend/follow-payout.ts';
import { payOutSpend } from '../../src/chat/use-cases/spend/pay-out-spend.ts';
import { createOperatorBalance } from '../../src/chat/use-cases/spend/operator-balance.ts';
import { createPayoutAlert } from '../../src/chat/use-cases/operator-alerts.ts';
import { sha256 } from '../../src/base/values/sha256.ts';
import { acceptSpend } from '../../src/chat/use-cases/spend/accept-spend.ts';
import type { SpendContext } from '../../src/chat/use-cases/context.ts';
import { createSpendQueue } from '../../src/chat/use-cases/spend/spend-queue.ts';
import { earnSpend, recordAuthorized } from '../../src/chat/use-cases/spend/record-spend.ts';
import {
  collectPayouts,
  listTroubledPayouts,
  takeNewPayouts,
  takeSentPayouts,
} from '../../src/chat/store/payouts.ts';
import { laneOn } from './credit.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import { type SpendChain, spendEventsOf } from './spend-gateway.ts';
import { eventually } from './wait.ts';
import { createPromiseTracker } from '../../src/base/runtime/promise-tracker.ts';

type LandedSpend = Extract<CreditsAnswer, { kind: 'landed' }>;
const nodeOf = ({ chain }: Pick<SpendChain, 'chain'>) =>
  createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) });

/** What pays out spends on a chain, with its own database; `change` changes its settings. */
export async function setUpPayouts({ chain }: SpendChain, change: Partial<SpendContext['settings']> = {}) {
  const database = await createDatabase();
  const settings: SpendContext['settings'] = {
    network: 'eip155:84532',
    chainId: 84_532,
    rpcUrl: chain.rpcUrl,
    contract: prepaidContractAddress,
    token: chain.token,
    operatorKey: devnetKeys.operator,
    recipient: undefined,
    serviceId: 1,
    minCharge: 1n,
    maxSpend: 10n ** 9n,
    atomsPerUnit: 1_000_000n,
    atomsPerNativeUnit: 1_000n,
    maxGasPercent: 50,
    maxFeePerGasWei: 10n ** 12n,
    claimMarginSecs: 300,
    authorizeTimeoutMs: 20_000,
    nonceWaitMs: 0,
    exposure: 0n,
    ...change,
  };
  const { chainId, rpcUrl, contract, operatorKey: privateKey, maxFeePerGasWei } = settings;
  const key = { privateKey, maxFeePerGasWei };
  const prepaid = createPrepaidContract({ chainId, rpcUrl, contract, ...key, timeoutMs: 20_000 });
  onTestFinished(() => prepaid.close());
  const lane = laneOn(database);
  const spending: SpendContext = {
    settings,
    prepaid,
    queue: createSpendQueue(8),
    operatorBalance: createOperatorBalance(prepaid),
    payoutAlert: createPayoutAlert(lane),
    pool: database.pool,
    lane,
    log: pino({ level: 'silent' }),
    processId: randomUUID(),
    running: createPromiseTracker(),
  };
  return { database, spending, chain };
}

export type Payouts = Awaited<ReturnType<typeof setUpPayouts>>;

/** A spend whose answer was delivered. */
export async function earned({ spending }: Payouts, auth: SpendAuth, landed?: LandedSpend): Promise<void> {
  const facts = { digest: sha256(auth.signature), firstByteSecs: 0, secret: undefined, isNonceUsed: false };
  const verified = { auth, authHash: spendAuthHash(auth), ...facts };
  const result = await acceptSpend(spending, verified, randomUUID(), Buffer.from('{}'));
  if (result.kind !== 'accepted') throw new Error(`the spend was refused: ${result.kind}`);
  if (landed) recordAuthorized(spending, result.spend, landed);
  expect(await earnSpend(spending, result.spend)).toBe(true);
}

/** One round of the payout worker: what was sent before is checked, then new ones are sent. How many were due. */
export async function runOnce({ spending }: Payouts): Promise<number> {
  await collectPayouts(spending.pool, 1_000);
  const sent = await takeSentPayouts(spending.pool, 16, 60);
  await Promise.all(sent.map((payout) => followPayout(spending, payout)));
  const due = await takeNewPayouts(spending.pool, 16, 60);
  await Promise.all(due.map((payout) => payOutSpend(spending, payout)));
  return sent.length + due.length;
}

export async function dueSpends({ spending }: Payouts) {
  await collectPayouts(spending.pool, 1_000);
  return takeNewPayouts(spending.pool, 16, 0);
}

/** Runs the payout worker and mines blocks until the spend's stream has ended. */
export const finish = (payouts: Payouts, auth: SpendAuth) =>
  eventually(async () => {
    await nodeOf(payouts).mine({ blocks: 1 });
    await runOnce(payouts);
    const last = await lastOf(payouts.database, auth);
    expect(['spend_paid_out', 'spend_failed']).toContain(last.type);
    return last;
  });
export const paid = { type: 'spend_paid_out', reason: undefined };

export const lastOf = async (database: TestDatabase, auth: SpendAuth) => {
  const events = await spendEventsOf(database, auth);
  const last = events.at(-1);
  return { type: last?.type, reason: last && 'reason' in last.data ? last.data.reason : undefined };
};

export async function troubles({ pool }: TestDatabase): Promise<unknown[]> {
  const spendsInTrouble = await listTroubledPayouts(pool, 100);
  return spendsInTrouble.map(({ status, attempts, reason }) => [status, attempts, reason]);
}

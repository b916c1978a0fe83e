import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { spendAuthHash } from '../../../../src/accounts/rules/spend/spend-auth.ts';
import { presence } from '../../../../src/base/values/presence.ts';
import { prepaidContractAddress } from '../../../../src/devnet/prepaid-contract.ts';
import { createPromiseTracker } from '../../../../src/base/runtime/promise-tracker.ts';
import { acceptSpend } from '../../../../src/chat/use-cases/spend/accept-spend.ts';
import { earnSpend, releaseSpend } from '../../../../src/chat/use-cases/spend/record-spend.ts';
import { sendHeartbeat } from '../../../../src/ledger/store/processes.ts';
import { generatePrivateKey } from 'viem/accounts';
import { laneOn } from '../../../support/credit.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { signSpend } from '../../../support/spend.ts';
import { spendEventsOf } from '../../../support/spend-gateway.ts';

const settings = { network: 'eip155:84532', chainId: 84_532, contract: prepaidContractAddress } as const;
const log = pino({ level: 'silent' });

function processOn(database: TestDatabase) {
  const lane = laneOn(database);
  return {
    settings: settings as never,
    pool: database.pool,
    lane,
    processId: randomUUID(),
    running: createPromiseTracker(),
    log,
  };
}

/** Time passes in which only this process sends heartbeats. */
async function outlive(database: TestDatabase, processId: string): Promise<void> {
  for (let secs = 0; secs <= presence.silentSecs + 3; secs += 6) {
    await database.moveClock(secs);
    await sendHeartbeat(database.pool, processId, presence.silentSecs);
  }
}

const verify = async () => {
  const auth = await signSpend(settings, generatePrivateKey());
  const digest = `0x${'5e'.repeat(32)}` as const;
  const secret = 'a secret of the payer';
  return { auth, authHash: spendAuthHash(auth), digest, firstByteSecs: 0, secret, isNonceUsed: false };
};

test('a spend that its own gateway has released is not earned: nothing follows its release', async () => {
  const database = await createDatabase();
  const gateway = processOn(database);
  const verified = await verify();
  const accepted = await acceptSpend(gateway, verified, randomUUID(), Buffer.from('{}'));
  if (accepted.kind !== 'accepted') throw new Error(accepted.kind);
  await releaseSpend(gateway, accepted.spend, 'upstream_busy');
  expect(await earnSpend(gateway, accepted.spend)).toBe(false);
  const events = await spendEventsOf(database, verified.auth);
  expect(events.map(({ type }) => type)).toEqual(['spend_accepted', 'spend_released']);
  await gateway.running.settled();
});

test('a spend that another gateway has released is not earned, however late the ledger says so', async () => {
  const database = await createDatabase();
  const [slow, other] = [processOn(database), processOn(database)];
  const verified = await verify();
  const body = Buffer.from('{}');
  const cutOff = Promise.withResolvers<void>();
  const { append } = slow.lane;
  slow.lane.append = async (command, options) => {
    if (command.events.some(({ type }) => type === 'spend_earned')) await cutOff.promise;
    return append.call(slow.lane, command, options);
  };
  const accepted = await acceptSpend(slow, verified, randomUUID(), body);
  if (accepted.kind !== 'accepted') throw new Error(accepted.kind);
  await outlive(database, other.processId);
  expect(await acceptSpend(other, verified, randomUUID(), body)).toMatchObject({ kind: 'accepted' });
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const earning = earnSpend(slow, accepted.spend);
  await vi.advanceTimersByTimeAsync(60_000);
  vi.useRealTimers();
  cutOff.resolve();
  expect(await earning).toBe(false);
  const events = await spendEventsOf(database, verified.auth);
  expect(events.map(({ type }) => type)).toEqual(['spend_accepted', 'spend_released', 'spend_accepted']);
});

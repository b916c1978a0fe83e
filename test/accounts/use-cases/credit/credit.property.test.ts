import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { RecordedEvent } from '../../../../src/ledger/rules/event.ts';
import { issueApiKey, revokeKey } from '../../../../src/accounts/use-cases/api-keys.ts';
import {
  expireCredit,
  grantCredit,
  openCreditAccount,
} from '../../../../src/accounts/use-cases/credit/credit.ts';
import { recoverChats } from '../../../../src/chat/use-cases/recover-chats.ts';
import type { Admission } from '../../../../src/ledger/store/append-batch.ts';
import { markHoldsStarted } from '../../../../src/accounts/store/credit.ts';
import { sendHeartbeat } from '../../../../src/ledger/store/processes.ts';
import { writerRole } from '../../../../src/ledger/store/database.ts';
import { openLane } from '../../../../src/ledger/store/lane.ts';
import { admission, codeOf, expectBooks, settle } from '../../../support/credit.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { propertyRuns } from '../../../support/property-runs.ts';
import { presence } from '../../../../src/base/values/presence.ts';

const { silentSecs } = presence;

/** Two of everything, and sums of the same size, so that steps meet and credit runs out. */
const two = fc.constantFrom(0, 1);
const micros = fc.bigInt({ min: 1n, max: 100n });
const step = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('grant' as const), of: two, by: two, micros }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('expire' as const), of: two, by: two, micros }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('admit' as const), of: two, by: two, micros }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('start' as const), chat: fc.nat(19) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      chat: fc.nat(19),
      by: two,
      part: fc.bigInt(0n, 100n),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('recover' as const), by: two }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('revoke' as const), of: two, by: two }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** What happens at once, and whether the processes that hold credit fall silent before it. */
const wave = fc.record({ fallSilent: fc.boolean(), steps: fc.array(step, { minLength: 4, maxLength: 16 }) });

async function playground(database: TestDatabase) {
  const lanes = [0, 1].map(() => openLane({ url: database.url, role: writerRole }));
  const ledger = { ...database, lane: lanes[0]! };
  const log = pino({ level: 'silent' });
  const processes = lanes.map((lane) => ({ ...database, lane, processId: randomUUID(), log }));
  const accounts = [await openCreditAccount(ledger, 'a'), await openCreditAccount(ledger, 'b')];
  for (const accountId of accounts) await grantCredit(ledger, accountId, 300n);
  // the first key has a budget, the second one a cap
  const keys = await Promise.all(
    accounts.map((accountId, at) =>
      issueApiKey(ledger, {
        accountId,
        name: 'k',
        ...(at === 0 ? { budget: { micros: 200n, period: 'day' } } : { capMicros: 150n }),
      }),
    ),
  );
  const admitted: Admission[] = [];
  let nowSecs = 0;

  const play = async (one: Step): Promise<void> => {
    const chat = 'chat' in one ? admitted[one.chat % Math.max(1, admitted.length)] : undefined;
    const lane = lanes['by' in one ? one.by : 0]!;
    const of = 'of' in one ? one.of : 0;
    const [accountId, keyId] = [accounts[of]!, keys[of]!.keyId];
    switch (one.kind) {
      case 'grant':
        return void (await grantCredit({ ...database, lane }, accountId, one.micros));
      case 'expire':
        return void (await expireCredit({ lane }, accountId, one.micros));
      case 'admit': {
        const command = admission({ accountId, keyId, holdMicros: one.micros });
        if (codeOf(await lane.appendCredit(command)) === 'ok') admitted.push(command.admit);
        return;
      }
      case 'start':
        if (chat) await markHoldsStarted(database.pool, [chat.chatId]);
        return;
      case 'settle': {
        if (!chat) return;
        const captured = (chat.holdMicros * one.part) / 100n;
        return void (await settle(lane, chat, captured, chat.holdMicros - captured));
      }
      case 'recover':
        return void (await recoverChats(processes[one.by]!, silentSecs));
      case 'revoke':
        return void (await revokeKey({ ...ledger, lane }, { keyId }));
    }
  };

  /** Everybody who holds anything falls silent; those who recover do not. */
  const fallSilent = async (): Promise<void> => {
    for (const end = nowSecs + 18; nowSecs <= end; nowSecs += 3) {
      await database.moveClock(nowSecs);
      for (const { processId } of processes) await sendHeartbeat(database.pool, processId, silentSecs);
    }
  };
  return { play, fallSilent, admitted, close: () => Promise.all(lanes.map((lane) => lane.close())) };
}

/** How much of a chat's hold was captured or released. */
function endedMicros(events: readonly RecordedEvent[], { chatId }: Admission): bigint {
  return events.reduce((sum, { stream, type, data }) => {
    const isEnd = type === 'credit_captured' || type === 'credit_released';
    return isEnd && stream === `chat:${chatId}` ? sum + BigInt(data.amount_micros) : sum;
  }, 0n);
}

test('the books are exact after any concurrent grants, holds, settlements, expiries, revocations and recoveries', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(wave, { minLength: 3, maxLength: 6 }), async (waves) => {
      const database = await createDatabase();
      const { play, fallSilent, admitted, close } = await playground(database);
      for (const { fallSilent: isSilent, steps } of waves) {
        if (isSilent) await fallSilent();
        await Promise.all(steps.map(play));
      }
      await close();
      const events = await expectBooks(database);
      // all of it or nothing
      for (const chat of admitted) expect([0n, chat.holdMicros]).toContain(endedMicros(events, chat));
    }),
    propertyRuns(10),
  );
});

import fc from 'fast-check';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { grantCredit, openCreditAccount } from '../../../src/accounts/use-cases/credit/credit.ts';
import { createApiKey } from '../../../src/accounts/store/api-keys.ts';
import {
  type Admission,
  type BatchAnswer,
  type CreditCommand,
  encodeCreditCommand,
  type HaltAnswer,
} from '../../../src/ledger/store/append-batch.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { fullAnswer } from '../../../src/ledger/store/uncontended.ts';
import { clockAt, idOf, rowsOf, senderOn, stoppedDatabase } from '../../support/append-ways.ts';
import { admission, expectBooks, settlement } from '../../support/credit.ts';
import type { TestDatabase } from '../../support/database.ts';
import { propertyRuns } from '../../support/property-runs.ts';

/** One step of a chat, of few accounts, keys and limits, so that steps of a batch meet on them. */
const chatStep = fc.record({
  of: fc.constantFrom(0, 1, 2, 3),
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constant('admit' as const) },
    { weight: 8, arbitrary: fc.constant('settle' as const) },
    { weight: 1, arbitrary: fc.constantFrom('count' as const, 'recover' as const) },
  ),
  chat: fc.nat(30),
  micros: fc.bigInt({ min: 1n, max: 40n }),
  perMinute: fc.constantFrom(5, 30, 100, 100, 100),
  perDay: fc.constantFrom(undefined, undefined, undefined, 20, 100),
  isFree: fc.boolean(),
  parts: fc.constantFrom(undefined, undefined, undefined, undefined, undefined, 2n),
});
type ChatStep = typeof chatStep extends fc.Arbitrary<infer T> ? T : never;
const chatBatch = fc.record({
  // the clock is also set back
  movedMs: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(0, 1, 900, 20_000, 40_000, 70_000) },
    { weight: 1, arbitrary: fc.constantFrom(-400, 46_800_000, 86_400_000) },
  ),
  changed: fc.oneof(
    { weight: 10, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom('revoked' as const, 'disabled' as const) },
  ),
  steps: fc.array(chatStep, { minLength: 1, maxLength: 4 }),
});

interface Spender {
  readonly accountId: number;
  readonly keyId: number;
}

async function spendersOn(database: TestDatabase): Promise<Spender[]> {
  const lane = openLane({ url: database.url, role: writerRole });
  const spenders: Spender[] = [];
  for (const [at, capMicros] of [undefined, 150n, undefined, undefined].entries()) {
    const accountId = await openCreditAccount({ ...database, lane }, `account-${at}`);
    await grantCredit({ ...database, lane }, accountId, at === 1 ? 400n : 40_000n);
    const budget = [
      undefined,
      undefined,
      { micros: 200n, period: 'month' },
      { micros: 90n, period: 'day' },
    ] as const;
    const keyId = await createApiKey(database.pool, {
      accountId,
      hash: String(at).repeat(64),

      name: 'test',
      models: undefined,
      capMicros,
      expiresAt: at === 2 ? new Date('2026-11-30T12:00:00Z') : undefined,
      isOfUser: false,
      budget: budget[at],
    });
    spenders.push({ accountId, keyId });
  }
  await lane.close();
  return spenders;
}

let chats = 0;

/** The commands of a batch, the same for every database; `holds` are the admissions of earlier ones. */
function chatCommand(
  spenders: readonly Spender[],
  holds: Admission[],
  added: Admission[],
  step: ChatStep,
): CreditCommand {
  const { of, kind, micros, perMinute, perDay, isFree, parts } = step;
  const { accountId = 0, keyId = 0 } = spenders[of] ?? {};
  const chatId = idOf(++chats);
  const at = step.chat % Math.max(1, holds.length);
  const earlier = holds[at];
  if ((kind === 'settle' || kind === 'recover') && earlier) {
    const capturedMicros = micros < earlier.holdMicros ? micros : earlier.holdMicros;
    // one in ten is settled again
    if (step.chat % 10 > 0) holds.splice(at, 1);
    const releasedMicros = earlier.holdMicros - capturedMicros;
    const settled = settlement(earlier, capturedMicros, releasedMicros);
    return kind === 'settle' ? settled : { ...settled, credit: { ...settled.credit, isUnstarted: true } };
  }
  const command = admission({
    chatId,
    processId: idOf(0),
    keyId: of === 2 && isFree ? undefined : keyId,
    accountId,
    subject: `key:${keyId}`,
    perMinute,
    perDay,
    others: [{ subject: `account:${of % 2}`, perMinute: 60, perDay: undefined }],
    holdMicros: isFree || kind === 'count' ? 0n : micros,
    isRefused: kind === 'count',
    neededMicros: parts === undefined || isFree ? undefined : micros * parts,
    leastMicros: perMinute === 5 ? 1n : undefined,
  });
  if (kind === 'admit' && !isFree) added.push(command.admit);
  return kind === 'count' ? { ...command, events: [] } : command;
}

const tables = {
  event: 'select * from tollbook.event order by seq',
  lane_counter: 'select * from tollbook.lane_counter order by type, batch',
  account: 'select * from tollbook.account order by account_id',
  api_key: 'select * from tollbook.api_key order by key_id',
  chat_hold: 'select * from tollbook.chat_hold order by chat_id',
  rate_window: 'select * from tollbook.rate_window order by subject',
};

type Sender = ReturnType<typeof senderOn>;

/** Moves the clock; revokes the spender's key or disables its account, and ends what was done before. */
async function change(
  owner: pg.Client,
  nowMs: number,
  changed: 'revoked' | 'disabled' | undefined,
  { accountId, keyId }: Spender,
): Promise<void> {
  const at = new Date(nowMs).toISOString();
  const set = (isSo: boolean) => (isSo ? `'${at}'` : 'null');
  await owner.query(`${clockAt(at)}
    update tollbook.api_key set revoked_at = ${set(changed === 'revoked')} where key_id = ${keyId} or revoked_at is not null;
    update tollbook.account set disabled_at = ${set(changed === 'disabled')} where account_id = ${accountId} or disabled_at is not null`);
}

async function ownerOf({ url }: TestDatabase): Promise<pg.Client> {
  const owner = new pg.Client(url);
  await owner.connect();
  onTestFinished(() => owner.end());
  return owner;
}

/** What both ways say of each command. */
function outcomesOf(answer: BatchAnswer | HaltAnswer): unknown {
  if ('halt' in answer) return answer;
  return answer.results.map((result) => {
    if (result.outcome === 'deferred' || !('detail' in result)) return result;
    // only the deciding function repeats its verdict among the numbers
    const detail = { ...result.detail, code: undefined };
    return { outcome: result.outcome === 'ok' ? 'ok' : result.code, detail };
  });
}

test('chats that are written count, hold and settle as those that are decided do, whatever shares a batch', async () => {
  const databases = [await stoppedDatabase(), await stoppedDatabase()];
  const [writer, decider] = databases.map(senderOn) as [Sender, Sender];
  const spenders = (await Promise.all(databases.map(spendersOn)))[0] ?? [];
  const owners = await Promise.all(databases.map(ownerOf));
  const ways = { written: 0, contended: 0, shared: 0 };
  const holds: Admission[] = [];
  let nowMs = Date.parse('2026-11-22T12:00:00.123Z');
  let batchNo = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(chatBatch, { minLength: 1, maxLength: 8 }), async (batches) => {
      for (const { movedMs, changed, steps } of batches) {
        batchNo++;
        nowMs += movedMs;
        await Promise.all(owners.map((owner) => change(owner, nowMs, changed, spenders[steps[0]?.of ?? 0]!)));
        const added: Admission[] = [];
        const batch = steps.map((one) => encodeCreditCommand(chatCommand(spenders, holds, added, one)));
        holds.push(...added);
        const short = await writer.write(batchNo, batch);
        ways[short ? 'written' : 'contended']++;
        if (short && new Set(steps.map(({ of }) => of)).size < steps.length) ways.shared++;
        const answers = [
          short ?? (await writer.decide(batchNo, batch)),
          await decider.decide(batchNo, batch),
        ];
        const [answer, other] = answers.map((each) => each && outcomesOf(fullAnswer(each, batch)));
        expect(answer).toEqual(other);
      }
    }),
    propertyRuns(15),
  );
  const [written, decided] = await Promise.all(databases.map((database) => rowsOf(database, tables)));
  expect(written).toEqual(decided);
  expect(Math.min(...Object.values(ways))).toBeGreaterThan(10);
  await expectBooks(databases[0]!);
});

test('a completion that does not fit its limits or credit, alone or with others of its batch, is not written', async () => {
  const database = await stoppedDatabase();
  const { write, decide } = senderOn(database);
  // the second key has a cap of 150
  const [rich, capped, , budgeted] = (await spendersOn(database)) as [Spender, Spender, Spender, Spender];
  const owner = await ownerOf(database);
  let no = 0;
  const encode = (changes: readonly Partial<Admission>[]) =>
    changes.map((one) =>
      encodeCreditCommand(admission({ ...rich, subject: 'key:1', holdMicros: 10n, ...one })),
    );
  const isWritten = async (...changes: readonly Partial<Admission>[]): Promise<boolean> =>
    (await write(++no, encode(changes))) !== null;

  expect(await isWritten({})).toBe(false);
  // creates the windows
  await decide(++no, encode([{}, { ...capped, subject: 'key:2' }]));
  expect(await isWritten({}, {})).toBe(true);
  // three of them in the last minute
  expect(await isWritten({ perMinute: 3 })).toBe(false);
  expect(await isWritten({ perMinute: 4 }, { perMinute: 4 })).toBe(false);
  expect(await isWritten({ perDay: 4 }, { perDay: 4 })).toBe(false);
  expect(await isWritten({ others: [{ subject: 'key:2', perMinute: 1, perDay: undefined }] })).toBe(false);
  expect(await isWritten({ others: [{ subject: 'new', perMinute: 1, perDay: undefined }] })).toBe(false);
  // 39,970 are available
  expect(await isWritten({ holdMicros: 40_000n })).toBe(false);
  expect(await isWritten({ holdMicros: 20_000n }, { holdMicros: 20_000n })).toBe(false);
  // where more than the hold must be available, it is left after the whole batch
  expect(await isWritten({ holdMicros: 20_000n, neededMicros: 39_971n })).toBe(false);
  expect(await isWritten({ holdMicros: 10n, neededMicros: 39_961n }, { holdMicros: 10n })).toBe(false);
  expect(await isWritten({ ...capped, holdMicros: 20n, neededMicros: 141n })).toBe(false);
  expect(await isWritten({ ...budgeted, holdMicros: 20n, neededMicros: 91n })).toBe(false);
  // 140 of the cap are left
  expect(await isWritten({ ...capped, holdMicros: 141n })).toBe(false);
  expect(await isWritten({ ...capped, holdMicros: 71n }, { ...capped, holdMicros: 70n })).toBe(false);
  // 90 a day
  expect(await isWritten({ ...budgeted, holdMicros: 91n })).toBe(false);
  expect(await isWritten({ ...budgeted, holdMicros: 46n }, { ...budgeted, holdMicros: 45n })).toBe(false);
  expect(await isWritten({ accountId: capped.accountId })).toBe(false);
  const nowMs = Date.parse('2026-11-22T12:00:01Z');
  for (const changed of ['revoked', 'disabled'] as const) {
    await change(owner, nowMs, changed, rich);
    expect(await isWritten({})).toBe(false);
  }
  await owner.query(
    `update tollbook.api_key set expires_at = '2026-11-22T12:00:01Z' where key_id = ${rich.keyId}`,
  );
  expect(await isWritten({})).toBe(false);
  await change(owner, nowMs, undefined, rich);
  await owner.query('update tollbook.api_key set expires_at = null');
  expect(
    await isWritten(
      { perMinute: 5 },
      { ...capped, holdMicros: 20n, neededMicros: 140n },
      { ...budgeted, holdMicros: 90n },
    ),
  ).toBe(true);
});

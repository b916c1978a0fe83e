import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { once } from 'node:events';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { findAccount } from '../../../src/accounts/store/credit.ts';
import { openPool, writerRole } from '../../../src/ledger/store/database.ts';
import type { Lane } from '../../../src/ledger/store/lane.ts';
import { startChatRecoverer, startHeartbeats } from '../../../src/chat/workers/chat-recoverer.ts';
import { admission, expectBooks, fund, databaseWithLane } from '../../support/credit.ts';
import { type TestDatabase } from '../../support/database.ts';
import { startSilentProxy } from '../../support/silent-proxy.ts';
import { eventually } from '../../support/wait.ts';

const presence = { silentSecs: 3, heartbeatMs: 100 };
/** Where one of two processes must stay seen: a busy machine stands still for seconds. */
const patient = { ...presence, silentSecs: 9 };
const holderScript = path.join(import.meta.dirname, '../use-cases/fixtures/chat-holder.ts');

/** Its own process that holds 100 micros for a completion whose upstream has begun to answer. */
async function startHolder(database: TestDatabase, accountId: number, { silentSecs } = presence) {
  const argv = [holderScript, database.url, String(accountId), String(silentSecs)];
  const child: ChildProcess = spawn(process.execPath, argv, { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines: Interface = createInterface({ input: child.stdout! });
  const says = async (): Promise<string> => String((await once(lines, 'line'))[0]);
  await says();
  return {
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    settle: (): Promise<string> => {
      child.stdin!.write('settle\n');
      return says();
    },
  };
}

function startWorker(database: Pick<TestDatabase, 'pool'>, lane: Lane, chosen = presence) {
  const context = { pool: database.pool, lane, processId: randomUUID(), log: pino({ level: 'silent' }) };
  const heartbeats = startHeartbeats(context, chosen);
  const recoverer = startChatRecoverer(context, chosen);
  const stop = async (): Promise<void> => {
    await recoverer.stop();
    await heartbeats.stop();
  };
  onTestFinished(stop);
  return { stop, processId: context.processId };
}

const isHeld = async ({ pool }: TestDatabase) =>
  (await pool.query('select from tollbook.chat_hold')).rowCount === 1;

async function seenAt({ pool }: TestDatabase, processId: string): Promise<string | undefined> {
  const { rows } = await pool.query<{ at: string }>(
    'select heartbeat_at::text as at from tollbook.process where process_id = $1',
    [processId],
  );
  return rows[0]?.at;
}

async function scene() {
  const { database, lane } = await databaseWithLane();
  return { database, lane, accountId: await fund(database, lane, 1_000n) };
}

test('the holds of a killed process are ended by another process', async () => {
  const { database, lane, accountId } = await scene();
  startWorker(database, lane);
  const holder = await startHolder(database, accountId);
  holder.kill('SIGKILL');
  await eventually(async () => expect(await isHeld(database)).toBe(false));
  expect(await findAccount(database.db, { accountId })).toMatchObject({
    balanceMicros: 900,
    heldMicros: 0,
    usedMicros: 100,
  });
  await expectBooks(database);
});

test('a stopped worker records no more heartbeats, and does not end its own holds', async () => {
  const { database, lane, accountId } = await scene();
  const worker = startWorker(database, lane);
  await eventually(async () => expect(await seenAt(database, worker.processId)).toBeDefined());
  await lane.appendCredit(admission({ accountId, processId: worker.processId, holdMicros: 1n }));
  await worker.stop();
  const last = await seenAt(database, worker.processId);
  const other = startWorker(database, lane);
  await eventually(async () => expect(await isHeld(database)).toBe(false));
  expect(await seenAt(database, worker.processId)).toBe(last);
  await other.stop();
  await expectBooks(database);
});

test('a process whose connections stop answering still records heartbeats and keeps its holds', async () => {
  const { database, lane, accountId } = await scene();
  const proxy = await startSilentProxy(database);
  const pool = openPool({ url: proxy.url, role: writerRole });
  const living = startWorker({ pool }, lane, patient);
  await eventually(async () => expect(await seenAt(database, living.processId)).toBeDefined());
  await lane.appendCredit(admission({ accountId, processId: living.processId, holdMicros: 1n }));
  startWorker(database, lane, patient);
  // all of its connections are open when they stop answering
  const connections = await Promise.all(Array.from({ length: 5 }, () => pool.connect()));
  for (const connection of connections) connection.release();
  proxy.silence();
  const dead = await startHolder(database, accountId, patient);
  dead.kill('SIGKILL');
  // by the time the dead one is not seen any more, the living one would not have been either
  await eventually(async () =>
    expect(await findAccount(database.db, { accountId })).toMatchObject({ usedMicros: 100 }),
  );
  expect(await findAccount(database.db, { accountId })).toMatchObject({ heldMicros: 1 });
  proxy.close();
  await living.stop();
  await pool.end();
  await expectBooks(database);
});

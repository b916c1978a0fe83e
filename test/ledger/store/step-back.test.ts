import { expect, onTestFinished, test } from 'vitest';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { LedgerInconsistentError } from '../../../src/ledger/store/halt.ts';
import { type Lane, openLane } from '../../../src/ledger/store/lane.ts';
import { pruneShortLived } from '../../../src/ledger/store/pruning.ts';
import { startBooks } from '../../support/books.ts';
import { backUp } from '../../support/backup.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { newStream, refused } from '../../support/events.ts';
import { beginGeneration } from '../../support/log.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { eventually } from '../../support/wait.ts';
import { databaseWithLane } from '../../support/credit.ts';

function laneOn(database: TestDatabase): Lane {
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(() => lane.close(1_000));
  return lane;
}

async function append(lane: Lane, times = 1): Promise<void> {
  for (let i = 0; i < times; i++)
    expect(await lane.append({ stream: newStream(), events: [refused()] })).toMatchObject({ outcome: 'ok' });
}

/** Why a lane records nothing. */
async function reasonOf(lane: Lane): Promise<string> {
  const failed: unknown = await lane
    .append({ stream: newStream(), events: [refused()] })
    .catch((error) => error);
  expect(failed).toBeInstanceOf(LedgerInconsistentError);
  expect(lane.state.halt).toEqual((failed as LedgerInconsistentError).halt);
  return (failed as LedgerInconsistentError).halt.reason;
}

const laneRow = ({ db }: TestDatabase) =>
  db.selectFrom('tollbook.lane').selectAll().executeTakeFirstOrThrow();

test('a gateway whose database lost an acknowledged append stops at its next one, and so does a gateway that lost nothing', async () => {
  const database = await createDatabase();
  const [one, other] = [laneOn(database), laneOn(database)];
  await append(one, 2);
  await append(other);
  const restore = await backUp(database);
  await append(one, 4);
  await restore();
  const reason = await reasonOf(one);
  expect(reason).toMatch(
    /went back in time: it had acknowledged the events up to 7, lacks some of them, and now ends at event 3,/,
  );
  await eventually(async () => expect(await laneRow(database)).toMatchObject({ halt_reason: reason }));
  expect(await reasonOf(other)).toBe(reason);
  expect(await reasonOf(laneOn(database))).toBe(reason);
  expect(await laneRow(database)).toMatchObject({ seq: 3, halt_known_seq: 7, halt_found_seq: 3 });
});

test('a lost append is noticed also when the ledger has grown past it meanwhile', async () => {
  const { database, lane } = await databaseWithLane();
  await append(lane);
  const restore = await backUp(database);
  await append(lane, 3);
  await restore();
  await append(laneOn(database), 9);
  expect(await reasonOf(lane)).toMatch(/up to 4, lacks some of them, and now ends at event 10,/);
});

test('an append that was never acknowledged may be lost: it is sent again, and the gateway continues', async () => {
  const { database, lane } = await databaseWithLane();
  await append(lane, 3);
  const restore = await backUp(database);
  await database.away(true);
  const waiting = append(lane);
  await eventually(() => expect(lane.state.brokenSince).toBeDefined());
  await restore();
  await waiting;
  expect(await laneRow(database)).toMatchObject({ seq: 4 });
});

test('a batch that can never be recorded leaves a number without an answer, and the gateway continues', async () => {
  const { database, lane } = await databaseWithLane();
  await append(lane);
  const poison = { stream: 'a stream with blanks', events: [refused()] };
  await expect(lane.append(poison)).rejects.toThrow(/check constraint/);
  await append(lane, 2);
  expect(lane.state.halt).toBeUndefined();
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('the row of a running process is never pruned, also when the clock steps by days', async () => {
  const { database, lane } = await databaseWithLane();
  await append(lane);
  await database.moveClock(3 * 86_400);
  await pruneShortLived(database.pool, 1_000);
  await append(lane);
  await database.asOwner(async (owner) => {
    await owner.query(
      `insert into tollbook.lane_batch (sender_hash, batch_no, content_hash, answer, at)
       select sha256(uuid_send(gen_random_uuid())), 1, '', '{}', '2020-01-01' from generate_series(1, 1500)`,
    );
    await pruneShortLived(database.pool, 10_000);
    expect((await owner.query('select from tollbook.lane_batch')).rowCount).toBe(1_000);
  });
  await append(lane);
});

/** Also if the database takes no other writes. */
const writeAsOwner = ({ asOwner }: TestDatabase, statement: (database: string) => string) =>
  asOwner(async (owner) => {
    await owner.query('set default_transaction_read_only = off');
    await owner.query(statement(owner.database ?? ''));
  });

/** As for a process that slept for longer than answers to it are kept. */
const pruneAnswers = (database: TestDatabase) =>
  writeAsOwner(database, () => 'delete from tollbook.lane_batch');

test('a sender whose kept answer was pruned while it slept continues alone under another name, and no other notices', async () => {
  const database = await createDatabase();
  const [sleeper, other] = [laneOn(database), laneOn(database)];
  await append(sleeper, 2);
  await append(other);
  await pruneAnswers(database);
  await append(sleeper, 2);
  await append(other, 2);
  // one that only knows what others have recorded, and one that knows nothing
  const [reader, fresh] = [laneOn(database), laneOn(database)];
  await reader.refresh();
  await pruneAnswers(database);
  await append(reader);
  await append(fresh);
  expect(await laneRow(database)).toMatchObject({ seq: 9, halt_reason: null });
  for (const lane of [sleeper, other, reader, fresh]) expect(lane.state.halt).toBeUndefined();
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('an append that was under way when its sender slept may have been recorded: it is refused as such, and the next one is not', async () => {
  const { database, lane } = await databaseWithLane();
  await append(lane);
  const setReadOnly = (isSo: boolean) =>
    writeAsOwner(database, (name) => `alter database ${name} set default_transaction_read_only = ${isSo}`);
  await setReadOnly(true);
  await database.asOwner((owner) =>
    owner.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`),
  );
  const underWay = lane.append({ stream: newStream(), events: [refused()] });
  await eventually(() => expect(lane.state.writesRefused).toBe('25006'));
  await pruneAnswers(database);
  await setReadOnly(false);
  await expect(underWay).rejects.toThrow(/the answer to this append was pruned: it may have been recorded/);
  expect(lane.state.brokenSince).toBeUndefined();
  await append(lane);
  expect(await laneRow(database)).toMatchObject({ seq: 2, halt_reason: null });
});

test('a restore halts every gateway also through a sender that slept, whose answers the restored ledger does not keep', async () => {
  const database = await createDatabase();
  const [sleeper, other] = [laneOn(database), laneOn(database)];
  await append(other);
  const restore = await backUp(database);
  await append(sleeper, 2);
  await restore();
  const grown = laneOn(database);
  await append(grown, 9);
  await pruneAnswers(database);
  const reason = await reasonOf(sleeper);
  expect(reason).toMatch(/up to 3, lacks some of them, and now ends at event 10,/);
  await eventually(async () => expect(await laneRow(database)).toMatchObject({ halt_reason: reason }));
  expect(await reasonOf(grown)).toBe(reason);
});

test('a loss is noticed also by a gateway that has only read the lost event, in answers to batches without events', async () => {
  const database = await createDatabase();
  const [reader, writer] = [laneOn(database), laneOn(database)];
  await append(reader);
  const restore = await backUp(database);
  await append(writer, 3);
  await reader.refresh();
  await restore();
  await append(laneOn(database), 9);
  expect(await reasonOf(reader)).toMatch(/up to 4, lacks some of them, and now ends at event 10,/);
});

test('a gateway that slept through a loss and its recovery stops alone: the recovered ledger continues', async () => {
  const database = await createDatabase();
  const sleeper = laneOn(database);
  await append(sleeper);
  const restore = await backUp(database);
  await append(sleeper, 2);
  await restore();
  await beginGeneration(database, 2, 1);
  const recovered = laneOn(database);
  await append(recovered, 5);
  expect(await reasonOf(sleeper)).toMatch(
    /lost events up to 3, and was recovered while this process did not/,
  );
  await append(recovered);
  expect(await laneRow(database)).toMatchObject({ seq: 8, halt_reason: null });
});

test('a halt stops the process immediately where the database cannot be written, and is recorded when it can', async () => {
  const database = await createDatabase();
  const [lane, other] = [laneOn(database), laneOn(database)];
  await append(lane);
  await append(other);
  await database.away(true);
  const waiting = lane.append({ stream: newStream(), events: [refused()] });
  const halt = { reason: 'an anchor holds another history', knownSeq: 9, foundSeq: 1 };
  lane.halt(halt);
  lane.halt({ reason: 'a later reason' });
  await expect(waiting).rejects.toThrow(
    /nothing is sold: an anchor holds another history\. Stop every gateway/,
  );
  expect(lane.state.halt).toEqual(halt);
  await database.away(false);
  await eventually(async () =>
    expect(await laneRow(database)).toMatchObject({
      halt_reason: halt.reason,
      halt_known_seq: 9,
      halt_found_seq: 1,
    }),
  );
  expect(await reasonOf(other)).toBe(halt.reason);
  await beginGeneration(database, 2, 1);
  await append(laneOn(database));
  // a process that was halted stays so until it is started again
  expect(await reasonOf(other)).toBe(halt.reason);
});

test('a gateway does not start on a halted ledger: the message says what happened and what to do', async () => {
  const database = await createDatabase();
  await database.pool.query(`select tollbook.halt_ledger('the database went back in time', 7, 3)`);
  await expect(startBooks(database)).rejects.toThrow(
    /^the ledger is inconsistent, and nothing is sold: the database went back in time\. Stop every gateway, .* `tollbook recover`/,
  );
});

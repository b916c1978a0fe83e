import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import type { KnownReplica, Replicas } from '../../../src/ledger/use-cases/replicas.ts';
import { openReplicas } from '../../../src/ledger/use-cases/replicas.ts';
import { openDatabase, openPool, writerRole } from '../../../src/ledger/store/database.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import type { Ledger, LedgerReader } from '../../../src/ledger/store/ledger.ts';
import { readStream } from '../../../src/ledger/store/streams.ts';
import { newStream, refused } from '../../support/events.ts';
import { startReplicated, type TestServer } from '../../support/replica.ts';
import { eventually } from '../../support/wait.ts';

/** A gateway's ledger, and what reads it and these replicas. */
function openOn(
  primary: TestServer,
  standbys: readonly TestServer[],
): { ledger: Ledger; replicas: Replicas } {
  const { url } = primary;
  const pool = openPool({ url, role: writerRole, maxConnections: 3 });
  const ledger = { pool, db: openDatabase(pool), lane: openLane({ url, role: writerRole }) };
  const urls = standbys.map((standby) => standby.url);
  const replicas = openReplicas({ urls, role: writerRole, ledger, log: pino({ level: 'silent' }) });
  onTestFinished(async () => {
    await replicas.close();
    await ledger.lane.close(1_000);
    await pool.end();
  });
  return { ledger, replicas };
}

const append = ({ lane }: Ledger, stream = newStream()) => lane.append({ stream, events: [refused()] });

/** Looks until the first replica is found so. */
function found(replicas: Replicas, isSo: (replica: KnownReplica) => void): Promise<void> {
  return eventually(async () => {
    await replicas.look();
    const [replica] = replicas.all();
    if (!replica) throw new Error('there is no replica');
    isSo(replica);
  });
}

const isFit = ({ state }: KnownReplica): void => expect(state).toMatchObject({ kind: 'fit' });
const isUnfit =
  (fault: string) =>
  ({ state }: KnownReplica): void =>
    expect(state).toMatchObject({ kind: 'unfit', fault });

/** The events of a stream, and whether the primary was read. */
async function readEvents({ pool }: LedgerReader, stream: string, ledger: Ledger) {
  const { events } = await readStream(pool, stream);
  return { count: events.length, lastSeq: events.at(-1)?.seq ?? 0, isPrimary: pool === ledger.pool };
}

async function present(replicas: Replicas, ledger: Ledger, stream: string) {
  const { value, asOf } = await replicas.present(
    ledger,
    (from) => readEvents(from, stream, ledger),
    ({ lastSeq }) => lastSeq,
  );
  return { count: value.count, isPrimary: value.isPrimary, seq: asOf?.seq };
}

async function older(replicas: Replicas, ledger: Ledger, stream: string) {
  const { value, asOf } = await replicas.older(ledger, (from) => readEvents(from, stream, ledger));
  return { count: value.count, isPrimary: value.isPrimary, seq: asOf?.seq };
}

test('a replica answers present reads with each event that was just appended, and a stopped one costs no caller an error', async () => {
  const { primary, replicas: standbys } = await startReplicated();
  const [standby] = standbys;
  const { ledger, replicas } = openOn(primary, standbys);
  const stream = newStream();
  await append(ledger, stream);
  // before the first look nothing is known of it
  expect(await present(replicas, ledger, stream)).toEqual({ count: 1, isPrimary: true, seq: 1 });
  await found(replicas, isFit);
  let fromReplica = 0;
  for (let count = 2; count <= 30; count++) {
    await append(ledger, stream);
    const read = await present(replicas, ledger, stream);
    expect(read).toMatchObject({ count, seq: count });
    if (!read.isPrimary) fromReplica++;
  }
  expect(fromReplica).toBeGreaterThan(5);
  await standby?.stop();
  const asked = await Promise.all([present(replicas, ledger, stream), older(replicas, ledger, stream)]);
  expect(asked.map(({ count, isPrimary }) => [count, isPrimary])).toEqual([
    [30, true],
    [30, true],
  ]);
  await found(replicas, isUnfit('unreachable'));
  await standby?.start();
  await found(replicas, isFit);
  await eventually(async () =>
    expect(await present(replicas, ledger, stream)).toMatchObject({ count: 30, isPrimary: false }),
  );
});

test('of a replica whose replay waits, present reads are answered by the primary, and older ones by the replica with the event up to which it has all', async () => {
  const { primary, replicas: standbys } = await startReplicated();
  const { ledger, replicas } = openOn(primary, standbys);
  const stream = newStream();
  await append(ledger, stream);
  await found(replicas, isFit);
  await found(replicas, ({ state }) => expect(state).toMatchObject({ seq: 1 }));
  await standbys[0]?.ask('select pg_wal_replay_pause()');
  await append(ledger, stream);
  expect(await present(replicas, ledger, stream)).toMatchObject({ count: 2, isPrimary: true });
  expect(await older(replicas, ledger, stream)).toEqual({ count: 1, isPrimary: false, seq: 1 });
  // what the caller has seen already
  const { value } = await replicas.older(
    ledger,
    (from) => readEvents(from, stream, ledger),
    async () => new Date(Date.now() + 60_000),
  );
  expect(value).toMatchObject({ count: 2, isPrimary: true });
});

test('an event that a replica has before the primary shows it is not answered: a failover could lose it', async () => {
  const { primary, replicas: standbys } = await startReplicated();
  const [standby] = standbys;
  const { ledger, replicas } = openOn(primary, standbys);
  const stream = newStream();
  await append(ledger, stream);
  await found(replicas, isFit);
  await primary.ask(`alter system set synchronous_standby_names = 'absent'`);
  await primary.ask('select pg_reload_conf()');
  await eventually(async () => {
    const [row] = await primary.ask('show synchronous_standby_names');
    expect(row).toEqual({ synchronous_standby_names: 'absent' });
  });
  const waiting = append(ledger, stream);
  await eventually(async () => {
    const rows = await standby?.ask<{ last: number }>('select max(seq)::int as last from tollbook.event');
    expect(rows).toEqual([{ last: 2 }]);
  });
  expect(await present(replicas, ledger, stream)).toMatchObject({ count: 1, isPrimary: true, seq: 1 });
  await found(replicas, isUnfit('ahead'));
  await primary.ask('alter system reset synchronous_standby_names');
  await primary.ask('select pg_reload_conf()');
  await waiting;
  await found(replicas, isFit);
  expect(await present(replicas, ledger, stream)).toMatchObject({ count: 2 });
});

test('after a failover a replica of the timeline before answers nothing, however far it had come', async () => {
  const { primary, replicas: standbys } = await startReplicated(2);
  const [next, other] = standbys as [TestServer, TestServer];
  const before = openOn(primary, [next]);
  const stream = newStream();
  await append(before.ledger, stream);
  await found(before.replicas, isFit);
  const { value: reader } = await before.replicas.older(before.ledger, async (from) => from);
  expect(reader.pool).not.toBe(before.ledger.pool);
  // the other one gets far ahead of where the new primary begins
  await eventually(async () => expect(await next.ask('select from tollbook.event')).toHaveLength(1));
  await next.ask('select pg_wal_replay_pause()');
  await next.ask(`alter system set primary_conninfo = ''`);
  await next.ask('select pg_reload_conf()');
  await next.ask('select pg_wal_replay_resume()');
  await primary.ask('create table public.filler as select generate_series(1, 20000) as number');
  await eventually(async () => {
    const [row] = await other.ask('select count(*)::int as count from public.filler').catch(() => []);
    expect(row).toEqual({ count: 20_000 });
  });
  await primary.stop();
  await next.ask('select pg_promote()');
  await found(before.replicas, ({ state }) => expect(state.kind).toBe('unfit'));
  const after = openOn(next, [other, next]);
  await append(after.ledger, stream);
  await found(after.replicas, isUnfit('other_timeline'));
  expect(await present(after.replicas, after.ledger, stream)).toMatchObject({ count: 2, isPrimary: true });
  expect(await older(after.replicas, after.ledger, stream)).toMatchObject({ count: 2, isPrimary: true });
  // the second address leads to a server that takes writes
  expect(after.replicas.all()[1]?.state).toMatchObject({ kind: 'unfit', fault: 'writable' });
  // what was read from it before writes nothing now that it could
  await expect(reader.pool.query('create table public.written ()')).rejects.toMatchObject({ code: '25006' });
});

test('a replica that follows the new primary after a failover answers again', async () => {
  const { primary, replicas: standbys } = await startReplicated(2);
  const [next, follower] = standbys as [TestServer, TestServer];
  await primary.stop();
  await next.ask('select pg_promote()');
  const { searchParams } = new URL(next.url.replace('@/', '@localhost/'));
  await follower.ask(`alter system set primary_conninfo = 'host=${searchParams.get('host')} user=postgres'`);
  await follower.ask('select pg_reload_conf()');
  const { ledger, replicas } = openOn(next, [follower]);
  const stream = newStream();
  await append(ledger, stream);
  await found(replicas, (replica) => {
    void follower.ask('checkpoint').catch(() => []);
    isFit(replica);
  });
  await eventually(async () =>
    expect(await present(replicas, ledger, stream)).toMatchObject({ count: 1, isPrimary: false }),
  );
});

test('a standby of another ledger answers nothing', async () => {
  const { primary } = await startReplicated(0);
  const { replicas: foreign } = await startReplicated(1);
  const { ledger, replicas } = openOn(primary, foreign);
  const stream = newStream();
  await append(ledger, stream);
  await found(replicas, isUnfit('other_ledger'));
  expect(await present(replicas, ledger, stream)).toMatchObject({ count: 1, isPrimary: true });
  expect(await older(replicas, ledger, stream)).toMatchObject({ count: 1, isPrimary: true });
});

import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { createStreamWatch, type StreamWatch } from '../../../src/calls/use-cases/stream-watch.ts';
import { queriesOn, writerRole } from '../../../src/ledger/store/database.ts';
import { type Lane, openLane } from '../../../src/ledger/store/lane.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { refused } from '../../support/events.ts';
import { eventually } from '../../support/wait.ts';

interface Watched {
  readonly watch: StreamWatch;
  readonly lane: Lane;
  /** How many queries were made. */
  readonly looks: () => number;
  /** How many were about progress. */
  readonly progressLooks: () => number;
  /** The looks fail, or not. */
  readonly fails: (isAway: boolean) => void;
  readonly stop: () => void;
}

function watchOf({ pool, url }: TestDatabase): Watched {
  let [looks, progressLooks, isAway, isStopping] = [0, 0, false, false];
  const counted = {
    query(query: pg.QueryConfig) {
      looks++;
      return isAway ? Promise.reject(new Error('away')) : pool.query(query);
    },
    connect() {
      progressLooks++;
      return pool.connect();
    },
  } as pg.Pool;
  const lane = openLane({ url, role: writerRole });
  onTestFinished(() => lane.close());
  const stop = (): void => void (isStopping = true);
  onTestFinished(stop);
  return {
    watch: createStreamWatch({ pool: counted, db: queriesOn(counted) }, () => isStopping),
    lane,
    looks: () => looks,
    progressLooks: () => progressLooks,
    fails: (away) => void (isAway = away),
    stop,
  };
}

const newStream = (): string => `0x${randomBytes(32).toString('hex')}`;
const never = new AbortController().signal;

/** Names in the order in which their promises settle. */
function inOrder(promises: Readonly<Record<string, Promise<unknown>>>): string[] {
  const settled: string[] = [];
  for (const [name, promise] of Object.entries(promises)) void promise.then(() => settled.push(name));
  return settled;
}

test('a thousand who wait for as many streams cost one query a look, and each is woken by an event of its own stream alone', async () => {
  const { watch, lane, looks } = watchOf(await createDatabase());
  const streams = Array.from({ length: 1_000 }, newStream);
  const woken = new Set<string>();
  for (const stream of streams) void watch.grown({ stream, version: 0 }, never).then(() => woken.add(stream));
  await eventually(() => expect(looks()).toBeGreaterThan(2));
  const before = looks();
  await Promise.all(streams.slice(0, 500).map((stream) => lane.append({ stream, events: [refused()] })));
  await eventually(() => expect(woken.size).toBe(500));
  expect([...woken].toSorted()).toEqual(streams.slice(0, 500).toSorted());
  const madeLooks = looks() - before;
  await eventually(() => expect(looks()).toBeGreaterThan(before + madeLooks));
  // looks are 100 ms apart: a query for each who waits would be hundreds
  expect(madeLooks).toBeLessThan(100);
});

test('who begins to wait after the event was recorded is woken, also if the ledger has not grown since', async () => {
  const { watch, lane } = watchOf(await createDatabase());
  const stream = newStream();
  await lane.append({ stream, events: [refused()] });
  // keeps the looks going at the ledger's end
  void watch.grown({ stream: newStream(), version: 0 }, never);
  await watch.grown({ stream, version: 0 }, never);
  const order = inOrder({
    seen: watch.grown({ stream, version: 1 }, never),
    behind: watch.grown({ stream, version: 0 }, never),
  });
  await eventually(() => expect(order).toContain('behind'));
});

test('a wait ends when its time is over, when the process stops, and not while the database is unreachable', async () => {
  const { watch, lane, fails, looks, stop } = watchOf(await createDatabase());
  const stream = newStream();
  const over = new AbortController();
  const timed = watch.grown({ stream: newStream(), version: 0 }, over.signal);
  over.abort();
  await timed;
  fails(true);
  const order = inOrder({ waiting: watch.grown({ stream, version: 0 }, never) });
  const before = looks();
  await lane.append({ stream, events: [refused()] });
  await eventually(() => expect(looks()).toBeGreaterThan(before + 2));
  expect(order).toEqual([]);
  fails(false);
  await eventually(() => expect(order).toEqual(['waiting']));
  const last = watch.grown({ stream, version: 5 }, never);
  stop();
  await last;
});

test('without a waiting client there is no query', async () => {
  const { watch, looks, lane } = watchOf(await createDatabase());
  const stream = newStream();
  const waiting = watch.grown({ stream, version: 0 }, never);
  await lane.append({ stream, events: [refused()] });
  watch.noteGrown(stream);
  await waiting;
  // the look that was under way
  await eventually(async () => {
    const before = looks();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(looks()).toBe(before);
  });
});

test('followers of progress cost one more query in ten looks, however many they are', async () => {
  const { watch, looks, progressLooks } = watchOf(await createDatabase());
  const ends = new AbortController();
  const all = Array.from({ length: 500 }, (_, callId) =>
    watch.grown({ stream: newStream(), version: 0, progress: { callId, atMs: 0 } }, ends.signal),
  );
  await eventually(() => expect(progressLooks()).toBe(2));
  expect(looks()).toBeGreaterThanOrEqual(20);
  ends.abort();
  await Promise.all(all);
});

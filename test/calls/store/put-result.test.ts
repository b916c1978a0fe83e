import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { sha256 } from '../../../src/base/values/sha256.ts';
import { readResult } from '../../../src/calls/store/calls.ts';
import { openPool } from '../../../src/ledger/store/database.ts';
import { putResult } from '../../../src/calls/store/put-result.ts';
import { createDatabase } from '../../support/database.ts';

const attempt = (callId: number) => ({ callId, attempt: 1, leaseId: randomUUID() });
const bytesOf = (callId: number): Buffer => Buffer.from([0, 255, callId % 256, 10]);

test('results that come together share statements, each is stored to the byte, and one that cannot be stored fails alone', async () => {
  const database = await createDatabase();
  const pool = openPool({ url: database.url, maxConnections: 4 });
  try {
    const results = Array.from({ length: 500 }, (_, index) => index + 1);
    const wrong = 250;
    const written = await Promise.allSettled(
      results.map((callId) =>
        putResult(pool, attempt(callId), callId === wrong ? 'text/\u0000' : 'image/x', bytesOf(callId)),
      ),
    );
    expect(written.flatMap(({ status }, index) => (status === 'rejected' ? [index + 1] : []))).toEqual([
      wrong,
    ]);
    for (const callId of [1, 2, 199, 201, 249, 251, 500])
      expect(await readResult(database.db, callId, 1)).toMatchObject({
        contentType: 'image/x',
        body: bytesOf(callId),
      });
    const { rows } = await database.pool.query(
      'select count(*) as calls, count(distinct xmin::text) as commits from tollbook.call_result',
    );
    expect(rows[0].calls).toBe(499);
    // one alone, and those of the statement with the wrong one by themselves
    expect(rows[0].commits).toBeLessThan(210);
  } finally {
    await pool.end();
  }
});

test('of several results of one lease the first one is kept, small or large, and the others get its hash', async () => {
  const database = await createDatabase();
  const pool = openPool({ url: database.url, maxConnections: 1 });
  try {
    const bodies = ['first', 'second', 'third', 'last'].map((text) => Buffer.from(text));
    const [first = Buffer.of()] = bodies;
    const one = attempt(1);
    const kept = { sha256: sha256(first), bytes: first.length };
    const answers = await Promise.all(bodies.map((body) => putResult(pool, one, undefined, body)));
    expect(answers).toEqual([undefined, kept, kept, kept]);
    expect(await putResult(pool, one, 'a/b', Buffer.alloc(1_048_576, 7))).toEqual(kept);
    expect(await readResult(database.db, 1, 1)).toMatchObject({ contentType: undefined, body: first });
  } finally {
    await pool.end();
  }
});

test('the result of a lease that replaced another one replaces its result, and that of a lost lease replaces nothing', async () => {
  const database = await createDatabase();
  const [lost, held] = [attempt(1), attempt(1)];
  const [early, right] = [Buffer.from('early'), Buffer.from('right')];
  expect(await putResult(database.pool, lost, undefined, early)).toBe(undefined);
  await database.asOwner((owner) =>
    owner.query(
      `insert into tollbook.call (service_id, job_index, created_at, body_id, stream, payment, status, lease_id, attempt, due_at)
        values (1, 0, now(), gen_random_uuid(), 'a', 'b', 'leased', $1, 1, now())`,
      [held.leaseId],
    ),
  );
  expect(await putResult(database.pool, held, undefined, right)).toBe(undefined);
  expect(await putResult(database.pool, lost, undefined, early)).toBe(undefined);
  expect(await readResult(database.db, 1, 1)).toMatchObject({ body: right, leaseId: held.leaseId });
});

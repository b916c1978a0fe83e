import type pg from 'pg';
import type { StoredResult } from './result-uploads.ts';

interface Result {
  readonly call: { readonly callId: number; readonly attempt: number; readonly leaseId: string };
  readonly contentType: string | undefined;
  readonly body: Buffer;
  /** Status and headers of a route's answer. */
  readonly head: string | undefined;
}

interface Waiting {
  readonly result: Result;
  readonly written: PromiseWithResolvers<StoredResult | undefined>;
}

/** The results that wait for the statement that is under way on their pool. */
const waitingOn = new WeakMap<pg.Pool, Waiting[]>();

/** A larger result is written by itself: it would delay the others. */
const smallBytes = 16_384;
const atOnce = 200;

/**
 * Stores the result of a lease, before `completed` is recorded. Undefined once it is stored; if the lease has another result already, that
 * one, which is kept. Small ones that come while others are being written share one statement, and so one commit.
 */
export function putResult(
  pool: pg.Pool,
  call: Result['call'],
  contentType: string | undefined,
  body: Buffer,
  head?: string,
): Promise<StoredResult | undefined> {
  const result = { call, contentType, body, head };
  if (body.length > smallBytes) return putAlone(pool, result);
  const one: Waiting = { result, written: Promise.withResolvers() };
  const waiting = waitingOn.get(pool);
  if (waiting) waiting.push(one);
  else void writeAll(pool, one);
  return one.written.promise;
}

/** Writes one result, and then those that came meanwhile, until none is left. */
async function writeAll(pool: pg.Pool, first: Waiting): Promise<void> {
  const waiting = [first];
  waitingOn.set(pool, waiting);
  while (waiting.length > 0) await writeTogether(pool, waiting.splice(0, atOnce));
  waitingOn.delete(pool);
}

/** Never rejects: each result has its own outcome. */
async function writeTogether(pool: pg.Pool, batch: readonly Waiting[]): Promise<void> {
  try {
    if (batch.length > 1) {
      const kept = await putTogether(
        pool,
        batch.map(({ result }) => result),
      );
      for (const [index, { written }] of batch.entries()) written.resolve(kept.get(index));
      return;
    }
  } catch {
    // one of them may be the reason: each is written by itself, and its own error is reported
  }
  await Promise.all(
    batch.map(({ result, written }) => putAlone(pool, result).then(written.resolve, written.reject)),
  );
}

/** Those of the results whose lease has another one, by their index. */
async function putTogether(
  pool: pg.Pool,
  results: readonly Result[],
): Promise<ReadonlyMap<number, StoredResult>> {
  const rows = results.map(({ call, contentType, body, head }) => ({
    call_id: call.callId,
    attempt: call.attempt,
    lease_id: call.leaseId,
    content_type: contentType,
    base64: body.toString('base64'),
    head,
  }));
  // raw SQL: the runners' hot path, prepared
  const kept = await pool.query<StoredResult & { readonly place: number }>({
    name: 'put_results',
    text: 'select * from tollbook.put_results($1)',
    values: [JSON.stringify(rows)],
  });
  return new Map(kept.rows.map(({ place, sha256, bytes }) => [place - 1, { sha256, bytes }]));
}

async function putAlone(
  pool: pg.Pool,
  { call, contentType, body, head }: Result,
): Promise<StoredResult | undefined> {
  // raw SQL with parameters: a literal doubles the result's bytes
  const { rows } = await pool.query<StoredResult>(
    'select * from tollbook.put_result($1, $2, $3, $4, $5, $6)',
    [call.callId, call.attempt, call.leaseId, contentType ?? null, body, head ?? null],
  );
  return rows[0];
}

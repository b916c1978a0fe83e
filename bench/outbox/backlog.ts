import type pg from 'pg';
import { leaseCalls } from '../../src/calls/store/calls.ts';

/** A queue that has this many calls ready, of this many services and jobs of each. */
export interface Backlog {
  readonly calls: number;
  readonly services: number;
  readonly jobs: number;
}

const atOnce = 100_000;
/** This many calls are claimed of each queue, the smallest included: few enough that it does not run dry. */
export const claims = 60;
const callsInClaim = 10;

/** Ready for as long as their number says, with bodies of 200 bytes. */
const fill = `
  with filled as (
    insert into tollbook.call (stream, service_id, job_index, status, body_id, network, asset, symbol, due_at, created_at, payment)
    select '0x' || md5(n::text) || md5(n::text), n % $3 + 1, (n / $3) % $4, 'ready', md5(n::text)::uuid, 'eip155:8453', 'asset', 'USDC',
      now() - ($5 - n) * interval '1 millisecond', now(), md5(n::text)
    from generate_series($1::bigint, $2::bigint) n returning body_id
  ) insert into tollbook.call_body (body_id, body, created_at) select body_id, decode(repeat('ab', 200), 'hex'), now() from filled`;

/** @param owner a connection of the database's owner */
export async function fillQueue(owner: pg.Client, { calls, services, jobs }: Backlog): Promise<void> {
  await owner.query("set session_replication_role = 'replica'");
  await owner.query('truncate tollbook.call, tollbook.call_body');
  for (let from = 1; from <= calls; from += atOnce)
    await owner.query(fill, [from, Math.min(calls, from + atOnce - 1), services, jobs, calls]);
  await owner.query('vacuum analyze tollbook.call, tollbook.call_body');
  await owner.query('checkpoint');
}

/** The time of a claim, in milliseconds. */
export async function timeClaim(pool: pg.Pool, { services }: Backlog): Promise<number> {
  const ids = Array.from({ length: services }, (_, index) => index + 1);
  const startMs = performance.now();
  const leased = await leaseCalls(pool, ids, callsInClaim, 3_600);
  const ms = performance.now() - startMs;
  if (leased.length < callsInClaim) throw new Error(`a claim of ${callsInClaim} calls got ${leased.length}`);
  return ms;
}

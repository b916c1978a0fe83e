import { randomBytes, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { projectNext } from '../../src/audit/use-cases/projections/project.ts';
import { createStreamMemory } from '../../src/audit/use-cases/projections/stream-memory.ts';
import { encodeCommand, type LaneCommand } from '../../src/ledger/store/append-batch.ts';
import { findLeasedCall, type LeasedCall, leaseCalls } from '../../src/calls/store/calls.ts';
import {
  collectFollowUps,
  endFollowUps,
  takeFinalSettlements,
  takeFollowUps,
} from '../../src/payments/store/follow-ups.ts';
import { putResult } from '../../src/calls/store/put-result.ts';
import { readStream } from '../../src/ledger/store/streams.ts';
import { transferClaim } from '../../src/payments/store/claims.ts';
import { fullAnswer, uncontendedStatement } from '../../src/ledger/store/uncontended.ts';
import { network, payment } from '../append/payment.ts';

type Step = readonly [name: string, work: () => Promise<unknown>];
const atOnce = 100;

/** Appends commands in batches; returns the ids of the calls that they added. */
function appender(pool: pg.Pool, batchSize: number) {
  const flusher = randomUUID();
  let no = 0;
  return async (commands: readonly LaneCommand[]): Promise<number[]> => {
    const ids: number[] = [];
    for (let at = 0; at < commands.length; at += batchSize) {
      const batch = commands.slice(at, at + batchSize).map(encodeCommand);
      no++;
      const { rows } = await pool.query<{ answer: Parameters<typeof fullAnswer>[0] | null }>(
        uncontendedStatement(1, flusher, no, no - 1, batch) ?? '',
      );
      const recorded = rows[0]?.answer;
      const answer = recorded ? fullAnswer(recorded, batch) : undefined;
      if (!answer || 'halt' in answer) throw new Error('a batch was not recorded');
      ids.push(...answer.results.map((one) => ('call_id' in one ? (one.call_id ?? 0) : 0)));
    }
    return ids;
  };
}

const seqs = (list: readonly { seq: number }[]): number[] => list.map(({ seq }) => seq);

/** The steps of `count` payments, to be taken in their order: from the quote to the final block. The chain's answers are made up. */
export function paymentLife(pool: pg.Pool, batchSize: number, count: number): readonly Step[] {
  const append = appender(pool, batchSize);
  const memory = createStreamMemory();
  const all = Array.from({ length: count }, payment);
  let [ids, leased, found]: [number[], LeasedCall[], { seq: number; stream: string }[]] = [[], [], []];
  let confirmations: LaneCommand[] = [];
  const project = async (): Promise<void> => {
    while ((await projectNext(pool, 1_000, { memory })) > 0);
  };
  const collect = async (): Promise<void> => {
    while ((await collectFollowUps(pool, 500)) > 0);
  };
  return [
    ['quote', () => append(all.map(({ quote }) => quote))],
    ['start: claims, signed payment, call', async () => (ids = await append(all.map(({ start }) => start)))],
    ['settlement, call released', () => append(all.map(({ settle }, at) => settle(ids[at] ?? 0)))],
    ['read models', project],
    ['follow-ups collected', collect],
    ['lease', async () => (leased = await leaseAll(pool))],
    ['lease looked up', () => inOrder(leased, (call) => findLeasedCall(pool, call.callId, call.leaseId))],
    ['result', () => Promise.all(leased.map((call) => putResult(pool, call, 'text/plain', randomBytes(90))))],
    ['delivered, completed', () => append(leased.map(completionOf))],
    ['read models, after completion', project],
    ['follow-ups collected, after completion', collect],
    ['settlements taken', async () => (found = await takeFollowUps(pool, 'confirm', network, atOnce))],
    [
      'their streams read',
      async () => (confirmations = await inOrder(found, (one) => confirmationOf(pool, one.stream))),
    ],
    ['confirmed on the chain', () => append(confirmations)],
    ['their follow-ups ended', () => endFollowUps(pool, 'confirm', seqs(found))],
    ['read models, after confirmation', project],
    ['follow-ups collected, after confirmation', collect],
    [
      'final blocks',
      async () => endFollowUps(pool, 'confirm', seqs(await takeFinalSettlements(pool, network, 1n, atOnce))),
    ],
  ];
}

async function inOrder<T, R>(list: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const one of list) results.push(await work(one));
  return results;
}

async function leaseAll(pool: pg.Pool): Promise<LeasedCall[]> {
  const leased: LeasedCall[] = [];
  for (;;) {
    const next = await leaseCalls(pool, [1], atOnce, 60);
    if (next.length === 0) return leased;
    leased.push(...next);
  }
}

function completionOf({ stream, callId, leaseId, attempt }: LeasedCall): LaneCommand {
  const facts = { call_id: callId, attempt };
  const result = { result_sha256: `0x${randomBytes(32).toString('hex')}`, result_bytes: 90 } as const;
  return {
    stream,
    expect: 5,
    events: [
      { type: 'delivered', data: facts },
      { type: 'completed', data: { ...facts, ...result } },
    ],
    call: { op: 'complete', callId, leaseId },
  };
}

async function confirmationOf(pool: pg.Pool, stream: string): Promise<LaneCommand> {
  const { events } = await readStream(pool, stream);
  const settled = events.find(({ type }) => type === 'payment_settled');
  if (settled?.type !== 'payment_settled') throw new Error('no settlement');
  const { asset, payer, payment_nonce, transaction } = settled.data;
  // another entry than the one that the settlement has claimed
  const place = { block_number: '1', block_hash: transaction, block_time: 1_800_000_000, log_index: 2 };
  return {
    stream,
    expect: events.length,
    events: [
      { type: 'settlement_confirmed', data: { network, asset, payer, payment_nonce, transaction, ...place } },
    ],
    claims: [transferClaim(network, transaction, 2, payment_nonce)],
  };
}

import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { projectNext, rebuildProjections } from '../../../../src/audit/use-cases/projections/project.ts';
import { accountCreditOf, paymentRowsOf } from '../../../../src/audit/use-cases/projections/read-model.ts';
import {
  createStreamMemory,
  type StreamMemory,
} from '../../../../src/audit/use-cases/projections/stream-memory.ts';
import { openPool, writerRole } from '../../../../src/ledger/store/database.ts';
import { collectFollowUps, takeFollowUps } from '../../../../src/payments/store/follow-ups.ts';
import { collectPayouts } from '../../../../src/chat/store/payouts.ts';
import { collectTopUpReversals } from '../../../../src/accounts/store/top-ups.ts';
import type { LedgerEvent, RecordedEvent } from '../../../../src/ledger/rules/event.ts';
import { listCompletions } from '../../../../src/chat/store/completions.ts';
import { listUsage, usageDimensions } from '../../../../src/chat/store/usage.ts';
import { openLane } from '../../../../src/ledger/store/lane.ts';
import {
  listAccountCredit,
  listJobDays,
  listPaidCalls,
  listPayments,
} from '../../../../src/ledger/store/payments.ts';
import { readProjection } from '../../../../src/ledger/store/projection.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { allEvents } from '../../../support/invariants.ts';
import { appendAll } from '../../../support/log.ts';
import { tollbook } from '../../../support/program.ts';
import {
  busyLedger,
  hex32Of,
  paidJob,
  refundOf,
  type StreamEvent,
} from '../../../support/synthetic-ledger.ts';
import { customer } from '../../../support/synthetic-people.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const always = { from: '2000-01-01', to: '2100-01-01' };

async function projectAll({ pool }: TestDatabase, max = 1_000, memory?: StreamMemory): Promise<void> {
  while ((await projectNext(pool, max, { ...(memory && { memory }) })) > 0);
}

async function readAll({ pool }: TestDatabase) {
  const payments = await listPayments(pool, {}, 0, 10_000);
  const calls = await listPaidCalls(pool, {}, 0, 10_000);
  const days = await listJobDays(pool, always, 10_000);
  const credit = await listAccountCredit(pool, {}, 0, 10_000);
  const usage = await listUsage(
    pool,
    { accountId: 1, from: '2000-01-01', to: '2100-01-01' },
    usageDimensions,
    undefined,
    10_000,
  );
  return {
    asOfSeq: payments.asOfSeq,
    creditAsOfSeq: credit.asOfSeq,
    payments: payments.rows,
    calls: calls.rows,
    days: days.rows,
    credit: credit.rows,
    usage: usage.rows,
    completions: (await listCompletions(pool, { accountId: 1 }, undefined, 10_000)).rows,
  };
}

/** What the rows must be: every stream folded at once. */
async function expected({ db }: TestDatabase) {
  const all = await allEvents(db);
  const streams = [...Map.groupBy(all, ({ stream }) => stream)].map(([quote_digest, events]) => {
    const rows = paymentRowsOf(events);
    return {
      payments: rows.payments.map((row) => ({ ...row, quote_digest })),
      calls: rows.calls.map((row) => ({ ...row, quote_digest })),
    };
  });
  const payments = streams.flatMap((rows) => rows.payments).toSorted((a, b) => a.seq - b.seq);
  const calls = streams.flatMap((rows) => rows.calls).toSorted((a, b) => a.call_id - b.call_id);
  return {
    payments,
    calls,
    credit: accountCreditOf(all),
    usage: usageOf(all),
    completions: completionsOf(all),
  };
}

/** The completions of the first account, the newest first. */
function completionsOf(events: readonly RecordedEvent[]) {
  const streams = [...Map.groupBy(events, ({ stream }) => stream).values()];
  return streams
    .flatMap((stream) => {
      const [first] = stream;
      if (first?.type !== 'chat_admitted' || first.data.account_id !== 1) return [];
      const end = stream.findLast(({ type }) => type === 'chat_completed' || type === 'chat_failed');
      const done = end?.type === 'chat_completed' ? end.data : undefined;
      return {
        seq: first.seq,
        at: first.at,
        chat_id: first.stream.replace('chat:', ''),
        key_id: first.data.key_id ?? 0,
        key_name: null,
        model: first.data.model,
        status: done?.ending ?? (end ? 'failed' : 'running'),
        prompt_tokens: done?.prompt_tokens ?? null,
        completion_tokens: done?.completion_tokens ?? null,
        cached_tokens: done ? (done.cached_tokens ?? 0) : null,
        cost: done?.cost_micros ?? null,
      };
    })
    .toSorted((one, other) => other.seq - one.seq);
}

/** What the completions of the first account used: the last end of each counts. */
function usageOf(events: readonly RecordedEvent[]) {
  const chats = [...Map.groupBy(events, ({ stream }) => stream).values()].flatMap((stream) => {
    const [first] = stream;
    if (first?.type !== 'chat_admitted' || first.data.account_id !== 1) return [];
    const end = stream.findLast(({ type }) => type === 'chat_completed' || type === 'chat_failed');
    const { model, key_id = 0 } = first.data;
    return end ? [{ key: { day: first.at.slice(0, 10), model, key_id }, end }] : [];
  });
  const groups = Map.groupBy(chats, ({ key: { day, model, key_id } }) => `${day} ${model} ${key_id}`);
  return [...groups.values()]
    .map((group) => {
      const done = group.flatMap(({ end }) => (end.type === 'chat_completed' ? [end.data] : []));
      const sum = (of: (data: (typeof done)[number]) => number) =>
        String(done.reduce((total, data) => total + of(data), 0));
      return {
        ...group[0]!.key,
        // no key is stored
        key_name: null,
        requests: String(done.length),
        failed: String(group.length - done.length),
        prompt_tokens: sum((data) => data.prompt_tokens),
        completion_tokens: sum((data) => data.completion_tokens),
        cached_tokens: sum((data) => data.cached_tokens ?? 0),
        cost: sum((data) => Number(data.cost_micros)),
      };
    })
    .toSorted((a, b) => (a.day === b.day ? a.key_id - b.key_id : a.day < b.day ? 1 : -1));
}

function daysOf(payments: Awaited<ReturnType<typeof expected>>['payments']) {
  const settled = payments.filter(({ settled_at }) => settled_at !== null);
  const groups = Map.groupBy(
    settled,
    ({ settled_at, job_index }) => `${settled_at?.slice(0, 10)}/${job_index}`,
  );
  return [...groups]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, rows]) => ({
      key,
      payments: rows.length,
      amount: String(rows.reduce((sum, { amount }) => sum + BigInt(amount), 0n)),
      completed: rows.filter(({ state }) => state === 'completed').length,
      dead_lettered: rows.filter(({ state }) => state === 'dead_lettered').length,
      refunded: rows.filter(({ state }) => state === 'refunded').length,
      refunded_amount: String(
        rows.reduce((sum, { state, amount }) => sum + (state === 'refunded' ? BigInt(amount) : 0n), 0n),
      ),
    }));
}

const of = (n: number, change: (history: StreamEvent[], named: object) => LedgerEvent[]): StreamEvent[] => {
  const history = paidJob(n);
  const { network, asset, payer, payment_nonce } = history[3]!.event.data as unknown as Record<
    string,
    string
  >;
  const events = change(history, { network, asset, payer, payment_nonce });
  return events.map((event) => ({ stream: history[0]!.stream, event }));
};
const events = (history: StreamEvent[], ...which: number[]) => which.map((i) => history[i]!.event);
const more = (type: string, data: object) => ({ type, data }) as LedgerEvent;

/** A completion of the first customer whose process was taken for dead, and which that process settled after all. */
function settledTwice(): StreamEvent[] {
  const stream = 'chat:00000000-0000-4000-8000-000000000777';
  const named = { account_id: 1, chat_id: stream.slice(5) };
  const completed = (ending: string, tokens: number, cost: string) =>
    more('chat_completed', {
      ending,
      model: 'large',
      prompt_tokens: tokens,
      completion_tokens: tokens,
      cached_tokens: tokens,
      is_estimate: false,
      cost_micros: cost,
    });
  return [
    more('chat_admitted', { caller: 'session', account_id: 1, model: 'large', streaming: false }),
    more('credit_held', { ...named, amount_micros: '100' }),
    completed('recovered', 0, '100'),
    more('credit_captured', { ...named, amount_micros: '100', is_estimate: true }),
    completed('completed', 5, '30'),
    more('credit_corrected', { ...named, amount_micros: '70' }),
  ].map((event) => ({ stream, event }));
}

/** Stories with unhappy ends: failed and paid again, taken back and settled again, dead and put back. */
function stories(): StreamEvent[][] {
  const transaction = hex32Of('transaction 900');
  return [
    ...Array.from({ length: 6 }, (_, n) => paidJob(n)),
    of(100, (history, named) => [
      ...events(history, 0, 1, 2),
      more('settlement_failed', { ...named, reason: 'no_funds' }),
    ]),
    of(101, (history, named) => [
      ...events(history, 0, 1, 2),
      more('settlement_unknown', { ...named, reason: 'timeout' }),
      ...events(history, 3, 4),
    ]),
    of(102, (history, named) => [
      ...events(history, 0, 1, 2, 3, 4),
      more('settlement_reorged', {
        ...named,
        transaction,
        block_number: '1',
        block_hash: transaction,
        call: 'withdrawn',
      }),
      ...events(history, 3),
      more('enqueued_again', history[4]!.event.data),
      ...events(history, 5, 6),
    ]),
    of(103, (history, named) => [
      ...events(history, 0, 1, 2, 3, 4, 5),
      more('settlement_disproved', { ...named, transaction, reason: 'not_on_chain', call: 'kept' }),
      ...events(history, 6),
    ]),
    of(104, (history) => [
      ...events(history, 0, 1, 2, 3, 4, 5),
      more('dead_lettered', { call_id: 105, attempt: 1, reason: 'attempts_exhausted' }),
      more('operator_requeued', { call_id: 105 }),
      more('delivered', { call_id: 105, attempt: 2 }),
    ]),
    of(105, (history) => [
      ...events(history, 0, 1, 2, 3, 4),
      more('dead_lettered', { call_id: 106, attempt: 1, reason: 'refused' }),
    ]),
    of(106, (history) => [
      ...events(history, 0, 1, 2, 3, 4),
      more('dead_lettered', { call_id: 107, attempt: 1, reason: 'refused' }),
      refundOf(history, 1).event,
    ]),
    of(107, (history) => [...events(history, 0, 1, 2, 3, 4, 5, 6), refundOf(history, 2).event]),
    of(108, (history) => [...events(history, 0, 1, 2, 3), refundOf(history, 3).event]),
    of(109, (history) => events(history, 0, 1, 2, 3)),
  ];
}

test('the read models are the fold of the ledger, step by step and rebuilt, for any order of events and any length of steps', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(19), { minLength: 100, maxLength: 130 }),
      fc.integer({ min: 1, max: 40 }),
      async (turns, step) => {
        const database = await createDatabase();
        const open = [...stories(), customer(0), customer(1), customer(2), settledTwice()];
        const history = [...turns.flatMap((turn) => open[turn]!.shift() ?? []), ...open.flat()];
        const middle = Math.floor(history.length / 2);
        await appendAll(database, history.slice(0, middle));
        const [one, other] = [createStreamMemory(), createStreamMemory()];
        await projectAll(database, step, one);
        await appendAll(database, history.slice(middle));
        // two at once: one of them is too late each time, has written nothing, and lacks the events of the other
        await Promise.all([projectAll(database, step, one), projectAll(database, step + 1, other)]);
        await projectAll(database);
        const read = await readAll(database);
        await rebuildProjections(database.pool, 100, () => {});
        expect(await readAll(database)).toEqual(read);
        const { payments, calls, credit, usage, completions } = await expected(database);
        expect(read.usage).toEqual(usage);
        expect(read.completions).toEqual(completions);
        expect(read.asOfSeq).toBe(history.length);
        expect(read.creditAsOfSeq).toBe(history.length);
        expect(read.credit).toEqual(credit);
        expect(read.payments).toEqual(payments);
        expect(read.calls).toEqual(calls);
        const days = read.days.map(({ day, job_index, ...counts }) => ({
          key: `${day}/${job_index}`,
          payments: counts.payments,
          amount: counts.amount,
          completed: counts.completed,
          dead_lettered: counts.dead_lettered,
          refunded: counts.refunded,
          refunded_amount: counts.refunded_amount,
        }));
        expect(days).toEqual(daysOf(payments));
      },
    ),
    propertyRuns(2),
  );
});

test('a step reads no more rows of the read models than it changes, also on connections from when they were empty', async () => {
  const database = await createDatabase();
  const pool = openPool({ url: database.url, maxConnections: 1, role: writerRole });
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(async () => {
    await lane.close();
    await pool.end();
  });
  const memory = createStreamMemory();
  const project = async (from: number) => {
    const jobs = Array.from({ length: 100 }, (_, n) => paidJob(from + n));
    for (const step of [jobs.map((job) => job.slice(0, 4)), jobs.map((job) => job.slice(4))]) {
      await Promise.all(
        step.map((job) => lane.append({ stream: job[0]!.stream, events: job.map(({ event }) => event) })),
      );
      while ((await projectNext(pool, 1_000, { memory })) > 0);
    }
  };
  const rowsRead = async (): Promise<number> => {
    await pool.query('select pg_stat_force_next_flush()');
    const { rows } = await pool.query<{ read: number }>(
      `select sum(idx_tup_fetch + seq_tup_read)::int as read from pg_stat_user_tables
       where schemaname = 'tollbook' and relname in ('payment', 'paid_call')`,
    );
    return rows[0]!.read;
  };
  // the plans are kept from here on
  for (let round = 0; round < 8; round++) await project(round * 100);
  const before = await rowsRead();
  await project(800);
  // each payment and its call are changed only by the second step, and read once then
  expect((await rowsRead()) - before).toBeLessThanOrEqual(2 * 100);
});

test('a rebuild gives the same rows and disturbs neither readers nor the projector', async () => {
  const database = await createDatabase();
  const history = [...busyLedger().take(1_112), ...customer(0)];
  await appendAll(database, history.slice(0, 570));
  await projectAll(database);
  let isOver = false;
  onTestFinished(() => {
    isOver = true;
  });
  const seen: number[] = [];
  const reading = (async () => {
    while (!isOver) {
      const { asOfSeq, payments } = await readAll(database);
      expect(payments.length).toBeGreaterThanOrEqual(80);
      seen.push(asOfSeq);
      await projectNext(database.pool, 100);
    }
  })();
  const [{ seq: rebuilt }] = await Promise.all([
    rebuildProjections(database.pool, 50, () => {}),
    appendAll(database, history.slice(570)),
  ]);
  isOver = true;
  await reading;
  expect(rebuilt).toBeGreaterThanOrEqual(570);
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  await projectAll(database);
  const { payments, calls, credit, usage } = await expected(database);
  expect(await readAll(database)).toMatchObject({ asOfSeq: history.length, payments, calls, credit, usage });
  expect(credit).toHaveLength(1);
  expect((await readProjection(database.pool)).generation).toBe(2);
  const { rows } = await database.pool.query('select distinct generation from tollbook.payment');
  expect(rows).toEqual([{ generation: 2 }]);
});

test('a command rebuilds damaged read models', async () => {
  const database = await createDatabase();
  await appendAll(database, [...busyLedger().take(57), ...customer(0)]);
  await projectAll(database);
  const before = await readAll(database);
  await database.asOwner((owner) =>
    owner.query(
      `update tollbook.payment set amount = 0, state = 'settled'; update tollbook.account_credit set held = 7; update tollbook.usage_day set cost = 7; update tollbook.completion set cost = 7`,
    ),
  );
  expect(await tollbook(['projections', 'rebuild'], { DATABASE_URL: database.url })).toMatchObject({
    code: 0,
    stdout: 'The read models were rebuilt from 92 events.\n',
  });
  expect(await readAll(database)).toEqual(before);
});

test('an event that no worker can read, appended with the writer role, stops no collector and no read model', async () => {
  const database = await createDatabase();
  const { pool } = database;
  const append = (stream: string, appended: unknown) =>
    pool.query('select tollbook.append(1::smallint, gen_random_uuid(), 1, 0, $1)', [
      JSON.stringify([{ stream, events: appended }]),
    ]);
  const grant = { account_id: 1, amount_micros: '9'.repeat(30), actor: 'x', reason: 'x' };
  const unreadable = [
    [{ type: 'payment_settled', data: { network: 'eip155:1', block_number: 'abc' } }],
    [{ type: 'payment_settled', data: {} }],
    [{ type: 'settlement_disproved', data: [] }],
    [{ type: 'refunded', data: 1 }],
    [{ type: 'quote_issued', data: {} }],
    [{ type: 'chat_completed', data: { prompt_tokens: 'x' } }],
    [{ type: 'of_another_program', data: 'x' }],
    [{ type: 'credit_granted', data: grant }],
    [
      { type: 'spend_accepted', data: { expiry: 'never' } },
      { type: 'spend_earned', data: {} },
    ],
  ];
  await appendAll(database, paidJob(1));
  for (const [n, garbage] of unreadable.entries()) await append(`garbage:${n}`, garbage);
  await appendAll(database, paidJob(2));
  await expect(append('nul', [{ type: 'refunded', data: { network: '\0' } }])).rejects.toThrow(
    /Unicode|escape/,
  );

  for (const collect of [collectFollowUps, collectTopUpReversals, collectPayouts])
    while ((await collect(pool, 1_000)) > 0);
  await projectAll(database);
  const { asOfSeq, creditAsOfSeq, payments } = await readAll(database);
  const head = await database.db.selectFrom('tollbook.lane').select('seq').executeTakeFirstOrThrow();
  expect([asOfSeq, creditAsOfSeq]).toEqual([head.seq, head.seq]);
  expect(payments.map(({ state }) => state)).toEqual(['completed', 'completed']);
  const due = await takeFollowUps(pool, 'unreadable', undefined, 100);
  // nothing is derived only from the quote, and no reader asks for the unknown type
  expect(due.map(({ stream }) => stream.slice(-1)).toSorted()).toEqual(['0', '1', '2', '3', '5', '7', '8']);
});

import { expect, test } from 'vitest';
import { projectNext, projectToHead } from '../../../src/audit/use-cases/projections/project.ts';
import { isIncluded, leafHash } from '../../../src/base/values/log/merkle.ts';
import { openCheckpoint } from '../../../src/base/values/log/checkpoint.ts';
import type { EventData, LedgerEvent } from '../../../src/ledger/rules/event.ts';
import type { OperatorScope } from '../../../src/base/values/operator-scope.ts';
import { issueOperatorToken } from '../../../src/accounts/use-cases/operator-tokens.ts';
import {
  type AuditedCalls,
  type AuditedCredit,
  auditedPayments,
  type AuditedPayments,
  type PaymentHistoryJson,
  type Totals,
  totals as totalsSchema,
} from '../../../src/audit/http/schemas/projections.ts';
import { type RefundsDue, refundsDue } from '../../../src/audit/http/schemas/refunds.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { checkReadModels } from '../../../src/audit/use-cases/verify/rows/check-rows.ts';
import { startBooks } from '../../support/books.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { appendAll, sealAll, testVerifier } from '../../support/log.ts';
import { busyLedger, paidJob, refundOf, type StreamEvent } from '../../support/synthetic-ledger.ts';
import { customer } from '../../support/synthetic-people.ts';
import { tamper } from '../../support/verify.ts';
import { eventually } from '../../support/wait.ts';

const history = busyLedger().take(342).toArray();

async function tokenOf(database: TestDatabase, scope: OperatorScope): Promise<string> {
  const lane = openLane({ url: database.url, role: writerRole });
  const { token } = await issueOperatorToken({ ...database, lane }, { name: 'auditor', scopes: [scope] });
  await lane.close();
  return token;
}

/** A gateway over 48 payments, and how an auditor asks it. */
async function audited(more: readonly StreamEvent[] = []) {
  const database = await createDatabase();
  await appendAll(database, [...history, ...more]);
  const token = await tokenOf(database, 'audit:read');
  while ((await projectNext(database.pool, 1_000)) > 0);
  const { url } = await startBooks(database);
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- names what the test looks at
  const ask = async <T>(path: string, bearer = token) => {
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${bearer}` } });
    return { status: response.status, json: (await response.json()) as T & { code?: string } };
  };
  return { database, url, ask };
}

test('the pages of payments have each payment once, in the order of their starts', async () => {
  const { ask } = await audited();
  const seen: number[] = [];
  let cursor = '';
  do {
    const { status, json } = await ask<AuditedPayments>(
      `/audit/payments?limit=20${cursor && `&cursor=${cursor}`}`,
    );
    expect(status).toBe(200);
    expect(json.as_of_seq).toBeGreaterThanOrEqual(342);
    seen.push(...json.payments.map(({ seq }) => seq));
    cursor = json.next ?? '';
  } while (cursor !== '');
  expect(seen).toEqual([...new Set(seen)].toSorted((a, b) => a - b));
  expect(seen).toHaveLength(48);
});

test('each filter returns exactly the matching payments', async () => {
  const { ask } = await audited();
  const all = (await ask<AuditedPayments>('/audit/payments?limit=1000')).json.payments;
  const [first] = all;
  const middle = all[20]!;
  const cases: [string, (payment: (typeof all)[number]) => boolean][] = [
    [`payer=${first!.payer}`, ({ payer }) => payer === first!.payer],
    ['state=completed', ({ state }) => state === 'completed'],
    ['state=settling', ({ state }) => state === 'settling'],
    ['service_id=1&job_index=2', ({ job_index }) => job_index === 2],
    ['service_id=9', () => false],
    ['token=USDC', () => true],
    ['token=EURC', () => false],
    // a symbol, however it begins
    ['token=0xBTC', () => false],
    [`token=${first!.asset}`, ({ asset }) => asset === first!.asset],
    ['network=eip155:84532', () => true],
    [`from=${middle.at}`, ({ at }) => at >= middle.at],
    [`to=${middle.at}`, ({ at }) => at < middle.at],
    [
      `from=${first!.at}&to=${middle.at}&job_index=1`,
      ({ at, job_index }) => at < middle.at && job_index === 1,
    ],
  ];
  for (const [query, isWanted] of cases) {
    const { json } = await ask<AuditedPayments>(`/audit/payments?limit=1000&${query}`);
    expect({ query, payments: json.payments }).toEqual({ query, payments: all.filter(isWanted) });
  }
});

test('a payment history is complete, and its proofs verify with only the public key', async () => {
  const { ask } = await audited();
  const digest = history[0]!.stream;
  const { status, json } = await eventually(async () => {
    const answer = await ask<PaymentHistoryJson>(`/audit/payments/${digest}`);
    expect(answer.json.events.every(({ proof }) => proof !== null)).toBe(true);
    return answer;
  });
  expect(status).toBe(200);
  expect(json).toMatchObject({ quote_digest: digest, state: 'completed', paid: true });
  expect(json.events.map(({ type }) => type)).toEqual(
    history.filter(({ stream }) => stream === digest).map(({ event }) => event.type),
  );
  const head = openCheckpoint(json.checkpoint ?? '', testVerifier);
  for (const { seq, leaf_base64, proof } of json.events) {
    const hashes = proof!.hashes.map((hash) => Buffer.from(hash, 'base64'));
    const leaf = Buffer.from(leaf_base64, 'base64');
    expect(isIncluded({ index: seq - 1, ...head }, leafHash(leaf), hashes)).toBe(true);
  }
  expect((await ask(`/audit/payments/0x${'1'.repeat(64)}`)).json.code).toBe('payment_not_found');
  expect((await ask('/audit/payments/nonsense')).status).toBe(404);
});

/** A paid job whose call is a dead letter. */
function deadJob(n: number): StreamEvent[] {
  const job = paidJob(n);
  const { stream } = job[0]!;
  const data = { call_id: n + 1, attempt: 1, reason: 'http_400' };
  return [...job.slice(0, 5), { stream, event: { type: 'dead_lettered', data } }];
}

test('refunds due leave out a payment whose events are not those that were sealed, and name these', async () => {
  const [edited, honest] = [501, 502].map(deadJob);
  const { database, ask } = await audited([...(edited ?? []), ...(honest ?? [])]);
  await sealAll(database);
  const started = history.length + 3;
  await tamper(database, {
    what: 'an amount',
    words: /./,
    change: (owner) =>
      owner.query(
        `update tollbook.event set data = replace(data, '"amount":"1000"', '"amount":"9000"') where seq = $1`,
        [started],
      ),
  });
  const { refunds_due: due, changed } = (await ask<RefundsDue>('/audit/refunds-due')).json;
  expect(changed).toEqual([started]);
  expect(due.map(({ quote_digest }) => quote_digest)).toEqual([honest?.[0]?.stream]);
});

test('the pages of refunds due have each once, until its refund is recorded', async () => {
  const dead = [501, 502, 503].map(deadJob);
  const { database, ask } = await audited(dead.flat());
  const first = (await ask<RefundsDue>('/audit/refunds-due?limit=2')).json;
  const second = (await ask<RefundsDue>(`/audit/refunds-due?limit=2&cursor=${first.next}`)).json;
  expect(refundsDue.parse(first)).toEqual(first);
  expect(second.next).toBeNull();
  const listed = [...first.refunds_due, ...second.refunds_due];
  expect(listed.map(({ quote_digest }) => quote_digest)).toEqual(dead.map(([quote]) => quote!.stream));
  const settled = dead[0]![3]!.event.data as { payment_nonce: string; payer: string; amount: string };
  expect(listed[0]).toMatchObject({
    payment_nonce: settled.payment_nonce,
    payer: settled.payer,
    amount: settled.amount,
    symbol: 'USDC',
    why: 'dead_lettered',
  });
  await appendAll(database, [refundOf(dead[1]!)]);
  await projectToHead(database);
  const left = (await ask<RefundsDue>('/audit/refunds-due')).json.refunds_due;
  expect(left.map(({ quote_digest }) => quote_digest)).toEqual([dead[0]![0]!.stream, dead[2]![0]!.stream]);
  const { json } = await ask<AuditedPayments>('/audit/payments?state=refunded');
  const { payments } = auditedPayments.parse(json);
  expect(payments).toMatchObject([{ quote_digest: dead[1]![0]!.stream, refund_due: null }]);
  const days = (await ask<Totals>('/audit/totals?from=2020-01-01&to=2100-01-01')).json;
  const refunded = totalsSchema.parse(days).totals.filter((day) => day.refunded > 0);
  expect(refunded).toMatchObject([{ refunded: 1, refunded_amount: payments[0]!.amount }]);
  expect((await ask(`/audit/payments?cursor=${first.next}`)).json.code).toBe('invalid_cursor');
  expect((await ask('/audit/refunds-due?limit=0')).json.code).toBe('invalid_request');
});

const sum = (list: readonly { amount: string }[]) =>
  list.reduce((all, { amount }) => all + BigInt(amount), 0n);

test('calls and totals add up to the payments', async () => {
  const { ask } = await audited();
  const payments = (await ask<AuditedPayments>('/audit/payments?limit=1000')).json.payments;
  const { calls } = (await ask<AuditedCalls>('/audit/calls?limit=1000')).json;
  expect(calls.map(({ call_id, status }) => [call_id, status])).toEqual(
    payments.map(({ call_id, state }) => [call_id, state]),
  );
  const { totals, complete } = (await ask<Totals>('/audit/totals?from=2020-01-01&to=2100-01-01')).json;
  expect(complete).toBe(true);
  expect(sum(totals)).toBe(sum(payments));
  expect(totals.reduce((all, one) => all + one.payments, 0)).toBe(48);
});

test('a call that was enqueued again is listed once, in its present state; while its payment is reversed it is not listed', async () => {
  const [n, requeued] = [601, 602];
  const [job, dead] = [paidJob(n), deadJob(requeued)];
  const [callId, deadId] = [n + 1, requeued + 1];
  const { stream } = job[0]!;
  const { payment_nonce, payer, network, asset, transaction } = job[3]!.event
    .data as EventData<'payment_settled'>;
  const more = (type: LedgerEvent['type'], data: object, of = stream): StreamEvent => ({
    stream: of,
    event: { type, data } as LedgerEvent,
  });
  const named = { network, asset, payer, payment_nonce, transaction };
  const takenBack = [
    ...job.slice(0, 5),
    more('delivery_failed', { call_id: callId, attempt: 1, reason: 'http_503', retry_at: 1 }),
    more('settlement_reorged', { ...named, block_number: '1', block_hash: transaction, call: 'withdrawn' }),
  ];
  const { database, ask } = await audited([...takenBack, ...dead]);
  const listed = async () => {
    const { json } = await ask<AuditedCalls>('/audit/calls?limit=1000');
    const { json: paid } = await ask<AuditedPayments>('/audit/payments?limit=1000');
    return {
      calls: json.calls.filter(({ call_id: id }) => id === callId || id === deadId),
      payments: paid.payments
        .slice(-2)
        .map(({ state, call_id, refund_due }) => ({ state, call_id, refund_due })),
      statuses: await Promise.all(
        ['enqueued', 'dead_lettered', 'completed'].map(async (status) => {
          const { json: of } = await ask<AuditedCalls>(`/audit/calls?limit=1000&status=${status}`);
          return of.calls
            .filter(({ call_id: id }) => id === callId || id === deadId)
            .map((one) => one.call_id);
        }),
      ),
    };
  };
  const append = async (...events: readonly StreamEvent[]) => {
    await appendAll(database, events);
    // the gateway adds them as well
    await projectToHead(database);
  };

  const before = await listed();
  const ended = expect.stringMatching(/Z$/) as string;
  expect(before.calls).toMatchObject([
    { call_id: deadId, status: 'dead_lettered', attempts: 1, ended_at: ended },
  ]);
  expect(before.payments).toEqual([
    { state: 'settlement_unknown', call_id: null, refund_due: null },
    { state: 'dead_lettered', call_id: deadId, refund_due: 'dead_lettered' },
  ]);
  expect(before.statuses).toEqual([[], [deadId], []]);

  await append(
    job[3]!,
    more('enqueued_again', { call_id: callId, payment_nonce }),
    more('operator_requeued', { call_id: deadId }, dead[0]!.stream),
  );
  const again = await listed();
  const [first] = again.calls;
  expect(again.calls).toMatchObject([
    { call_id: callId, quote_digest: stream, status: 'enqueued', attempts: 1, ended_at: null },
    { call_id: deadId, quote_digest: dead[0]!.stream, status: 'enqueued', attempts: 1, ended_at: null },
  ]);
  expect(again.payments).toEqual([
    { state: 'enqueued', call_id: callId, refund_due: null },
    { state: 'enqueued', call_id: deadId, refund_due: null },
  ]);
  expect(again.statuses).toEqual([[callId, deadId], [], []]);
  const at = async (type: LedgerEvent['type']) => {
    const { events } = (await ask<PaymentHistoryJson>(`/audit/payments/${stream}`)).json;
    return events.find((event) => event.type === type)?.at;
  };
  expect(first?.enqueued_at).toBe(await at('enqueued'));
  expect(await checkReadModels(database.pool)).toEqual([]);

  await append(
    more('delivered', { call_id: callId, attempt: 2 }),
    more('completed', { ...(job.at(-1)!.event.data as EventData<'completed'>), attempt: 2 }),
  );
  const done = await listed();
  expect(done.calls[0]).toMatchObject({ call_id: callId, status: 'completed', attempts: 2, ended_at: ended });
  expect(done.statuses).toEqual([[deadId], [], [callId]]);
});

test('the credit of every account adds up over all pages', async () => {
  const { database, ask } = await audited();
  await appendAll(database, [0, 1, 2].flatMap(customer));
  const whole = await eventually(async () => {
    const { json } = await ask<AuditedCredit>('/audit/credit');
    expect(json.as_of_seq).toBeGreaterThanOrEqual(342 + 3 * 28);
    return json;
  });
  expect(whole.accounts).toHaveLength(3);
  expect(whole.accounts[0]).toMatchObject({
    account_id: 1,
    account: expect.stringMatching(/^user:/),
    balance: '0.001',
    held: '0',
    granted: '0.001',
    topped_up: '0.0005',
    captured: '0.00045',
    expired: '0.00005',
  });
  const first = (await ask<AuditedCredit>('/audit/credit?limit=2')).json;
  const second = (await ask<AuditedCredit>(`/audit/credit?limit=2&cursor=${first.next}`)).json;
  expect([...first.accounts, ...second.accounts]).toEqual(whole.accounts);
  expect(second.next).toBeNull();
  const { account } = whole.accounts[1]!;
  const named = (await ask<AuditedCredit>(`/audit/credit?account=${account}`)).json;
  expect(named.accounts).toEqual([whole.accounts[1]]);
  for (const query of [`account=x'%20or%20true`, `cursor=${first.next}x`, 'limit=0', 'order=1'])
    expect((await ask(`/audit/credit?${query}`)).status).toBe(400);
});

test('a cursor of another database or list, or a forged one, is refused', async () => {
  const one = await audited();
  const other = await audited();
  // a test's databases are copies of one template; real ones make their own secret
  await other.database.asOwner((owner) =>
    owner.query(`update tollbook.secret set value = sha256('another') where name = 'receipt_token'`),
  );
  const { next } = (await one.ask<AuditedPayments>('/audit/payments?limit=5')).json;
  expect((await one.ask(`/audit/payments?cursor=${next}`)).status).toBe(200);
  expect(await other.ask(`/audit/payments?cursor=${next}`)).toMatchObject({
    status: 400,
    json: { code: 'invalid_cursor' },
  });
  expect((await one.ask(`/audit/calls?cursor=${next}`)).json.code).toBe('invalid_cursor');
  for (const cursor of ['5', '0-', `5${next?.slice(next.indexOf('-'))}`, "1'--"])
    expect((await one.ask(`/audit/payments?cursor=${encodeURIComponent(cursor)}`)).json.code).toBe(
      'invalid_cursor',
    );
});

test('a filter with SQL or nonsense in it is refused', async () => {
  const { ask } = await audited();
  const answers = [];
  for (const query of [
    "payer=0x1' or '1'='1",
    "state=completed'; drop table tollbook.payment; --",
    "token=USDC' or true --",
    "network=eip155:1' union select value from tollbook.secret --",
    'service_id=1 or 1=1',
    "from=2026-01-01'::date or true",
    'limit=1; select 1',
    'limit=0',
    'limit=1001',
    'order=payer',
  ]) {
    const { status, json } = await ask(`/audit/payments?${query.replaceAll(' ', '%20')}`);
    answers.push([query, status, json.code]);
  }
  expect(answers).toEqual(answers.map(([query]) => [query, 400, 'invalid_request']));
  expect(answers).toHaveLength(10);
  expect((await ask<AuditedPayments>('/audit/payments')).json.payments).toHaveLength(48);
  for (const query of ['', '?from=2026-02-30&to=2026-03-01', "?from=2026-01-01&to=2026-01-01'--"])
    expect((await ask(`/audit/totals${query}`)).json.code).toBe('invalid_request');
});

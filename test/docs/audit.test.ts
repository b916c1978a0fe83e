import { expect, test } from 'vitest';
import { projectNext } from '../../src/audit/use-cases/projections/project.ts';
import { sha256 } from '../../src/base/values/sha256.ts';
import type { LedgerEvent } from '../../src/ledger/rules/event.ts';
import { readerRole } from '../../src/ledger/store/database.ts';
import type { AnyClaim } from '../../src/ledger/store/append-batch.ts';
import { eventExamples } from '../ledger/rules/examples.ts';
import { databaseWithLane } from '../support/credit.ts';
import type { TestDatabase } from '../support/database.ts';
import { readPage } from '../support/pages.ts';
import { hex32Of, paidJob, payTo, refundOf, type StreamEvent, sweepOf } from '../support/synthetic-ledger.ts';

const page = readPage('docs/finance/audit.md');
const questions = [...page.text.matchAll(/^### (\d+)\. (.*)$/gm)].map(([, number, text]) => ({
  number,
  text,
}));
const queries = page.blocks.filter(({ language }) => language === 'sql').map(({ text }) => text);

const caller = `0x${'ca'.repeat(20)}`;
const otherCaller = `0x${'cb'.repeat(20)}`;

/** The first events of a paid job, and others in the place of the rest. */
function instead(n: number, kept: number, ...rest: LedgerEvent[]): StreamEvent[] {
  const job = paidJob(n);
  return [...job.slice(0, kept), ...rest.map((event) => ({ stream: job[0]!.stream, event }))];
}

const streamOf = (job: readonly StreamEvent[]) => job[0]!.stream;

/** What names the payment of a job in its events. */
function nameOf(n: number) {
  const event = paidJob(n)[1]!.event;
  if (event.type !== 'payment_verified') throw new Error('no payment');
  const { network, asset, payer, payment_nonce } = event.data;
  return { network, asset, payer, payment_nonce };
}

const deadLetter = (n: number): LedgerEvent => ({
  type: 'dead_lettered',
  data: { call_id: n + 1, attempt: 1, reason: 'http_500' },
});

const whole = paidJob(0);
const alsoWhole = paidJob(1);
const dead = instead(2, 6, deadLetter(2));
const requeued = instead(
  3,
  6,
  deadLetter(3),
  { type: 'operator_requeued', data: { call_id: 4, operator: 'ada' } },
  { type: 'delivered', data: { call_id: 4, attempt: 2 } },
  { type: 'completed', data: { call_id: 4, attempt: 2 } },
);
const unknown = instead(4, 3, {
  type: 'settlement_unknown',
  data: { ...nameOf(4), reason: 'timeout' },
});
const late = [
  ...instead(5, 3, { type: 'settlement_failed', data: { ...nameOf(5), reason: 'insufficient_funds' } }),
  ...paidJob(5).slice(3),
];
const refunded = [...instead(6, 6, deadLetter(6)), refundOf(paidJob(6))];
const [quoted, verified, ...started] = paidJob(7);
const delegated = [
  quoted!,
  verified!,
  {
    stream: quoted!.stream,
    event: {
      type: 'auth_passed',
      data: { caller, mode: 'delegated_caller_signature', caller_nonce_sha256: sha256('once') },
    } as const,
  },
  ...started,
];
const recovered: StreamEvent = {
  stream: hex32Of('a recovered payment'),
  event: { type: 'payment_recovered', data: { ...eventExamples.payment_recovered, ...nameOf(8) } },
};

function replay(by: string): StreamEvent {
  const data = {
    ...nameOf(9),
    quote_digest: hex32Of('the quote of a replay'),
    service_id: 1,
    job_index: 0,
    caller: by,
    caller_nonce_sha256: sha256('once'),
    used_by_quote: streamOf(delegated),
  };
  return { stream: `request:${by}`, event: { type: 'nonce_replay_denied', data } };
}

const ofAccount = { account_id: 7, amount_micros: '2500000' };
const ofChat = { ...ofAccount, chat_id: eventExamples.credit_held.chat_id };
const inStream = (stream: string, ...events: LedgerEvent[]) => events.map((event) => ({ stream, event }));
const others: StreamEvent[] = [
  recovered,
  replay(caller),
  replay(caller),
  replay(otherCaller),
  ...inStream('requests', { type: 'refusals_counted', data: { counts: { nonce_replay_denied: 4 } } }),
  sweepOf(1),
  ...inStream('operator:config', {
    type: 'operator_config_loaded',
    data: {
      jobs: 2,
      catalog_sha256: hex32Of('catalog'),
      changes: [
        {
          service_id: 1,
          job_index: 2,
          was: { mode: 'public_paid', price_wei: '5' },
          now: { mode: 'public_paid', price_wei: '6' },
        },
      ],
    },
  }),
  ...inStream(
    'period:books',
    { type: 'operator_period_closed', data: eventExamples.operator_period_closed },
    { type: 'operator_period_reviewed', data: eventExamples.operator_period_reviewed },
  ),
  ...inStream(
    'account:7',
    { type: 'credit_account_opened', data: { account_id: 7, name: 'acme' } },
    { type: 'credit_granted', data: { ...ofAccount, operator: 'ada', why: 'an outage' } },
    { type: 'credit_topped_up', data: { ...eventExamples.credit_topped_up, amount_micros: '5000000' } },
    { type: 'credit_reversed', data: { ...eventExamples.credit_reversed, amount_micros: '1000000' } },
    { type: 'credit_expired', data: { account_id: 7, amount_micros: '1', token_id: 1 } },
  ),
  ...inStream(
    `chat:${ofChat.chat_id}`,
    { type: 'credit_held', data: ofChat },
    { type: 'credit_captured', data: { ...ofChat, amount_micros: '300', is_estimate: false } },
    { type: 'credit_corrected', data: { ...ofChat, amount_micros: '100' } },
  ),
  ...inStream('spend:1', { type: 'spend_earned', data: eventExamples.spend_earned }),
];

const jobs = [whole, alsoWhole, dead, requeued, unknown, late, refunded, delegated];
const all = [...jobs, ...others.map((other) => [other])];

async function makeLedger(): Promise<TestDatabase> {
  const { database, lane } = await databaseWithLane();
  const nonce: AnyClaim = {
    kind: 'caller_nonce',
    caller,
    serviceId: 1,
    jobIndex: 1,
    nonceSha256: sha256('once'),
  };
  for (const job of all) {
    const events = job.map(({ event }) => event);
    const claims = job === delegated ? [nonce] : [];
    expect(await lane.append({ stream: streamOf(job), events, claims })).toMatchObject({ outcome: 'ok' });
  }
  while ((await projectNext(database.pool, 500)) > 0);
  return database;
}

type Row = Readonly<Record<string, unknown>>;

/** What a reader gets as the answer to a question of the page. */
async function ask(database: TestDatabase, number: number): Promise<Row[]> {
  const text = queries[number - 1]!.replace('0xTRANSACTION', hex32Of('transaction 0'))
    .replace('0xCALLER', caller)
    .replace("'NONCE'", "'once'")
    .replace("'DAY'", "'2100-01-01'");
  return database.asOwner(async (reader) => {
    await reader.query(`set role ${readerRole}`);
    return (await reader.query<Row>(text)).rows;
  });
}

const pick = (rows: readonly Row[], ...keys: string[]) => rows.map((row) => keys.map((key) => row[key]));

test('every question of the page has one query, and the page names every column of every view', async () => {
  expect(questions.map(({ number }) => Number(number))).toEqual(queries.map((_, n) => n + 1));
  expect(questions).toHaveLength(20);
  const { database } = await databaseWithLane();
  const { rows } = await database.asOwner((owner) =>
    owner.query<{ name: string; columns: string[] }>(
      `select format('audit.%s', table_name) as name, array_agg(column_name::text order by ordinal_position) as columns
        from information_schema.columns where table_schema = 'audit' group by table_name order by table_name`,
    ),
  );
  const lines = [...page.text.matchAll(/^\| `(audit\.\w+)` \| .* \| (.*) \|$/gm)].map(
    ([, name, columns = '']) => ({ name, columns: columns.replaceAll('`', '').split(', ') }),
  );
  expect(lines.toSorted((a, b) => (a.name! < b.name! ? -1 : 1))).toEqual(rows);
});

test("a reader's twenty questions get the answers that the ledger's events have", async () => {
  const database = await makeLedger();
  const answers = await Promise.all(queries.map((_, n) => ask(database, n + 1)));
  const answer = (number: number, ...keys: string[]) => pick(answers[number - 1]!, ...keys);
  const quotes = [whole, alsoWhole, dead, requeued, late, refunded, delegated].map(streamOf);

  expect(answer(1, 'quote', 'payer', 'amount', 'symbol', 'job_index')).toEqual([
    ...quotes.map((quote, index) => {
      const n = [0, 1, 2, 3, 5, 6, 7][index]!;
      return [quote, nameOf(n).payer, `0.00${1 + (n % 3)}000`, 'USDC', String(n % 3)];
    }),
    [recovered.stream, nameOf(8).payer, '3.264000', 'USDC', null],
  ]);
  expect(answer(2, 'quote', 'account', 'payer', 'owed', 'commodity')).toEqual([
    [streamOf(dead), 'Liabilities:RefundsDue', nameOf(2).payer, '0.003000', 'USDC-84532'],
    [recovered.stream, 'Liabilities:RefundsDue', nameOf(8).payer, '3.264000', 'USDC-84532'],
  ]);
  expect(answer(3, 'quote', 'due', 'symbol', 'why')).toEqual([
    [streamOf(dead), '0.003000', 'USDC', 'dead_lettered'],
    [recovered.stream, '3.264000', 'USDC', 'recovered'],
  ]);
  expect(answer(4, 'type', 'data')).toEqual(whole.map(({ event }) => [event.type, event.data]));
  expect(answer(5, 'service_id', 'job_index', 'quote')).toEqual([['1', '1', streamOf(delegated)]]);
  expect(answer(6, 'caller', 'refused', 'nonces')).toEqual([
    [caller, '2', '1'],
    [otherCaller, '1', '1'],
    [null, '4', '0'],
  ]);
  expect(answer(7, 'account', 'earned', 'commodity')).toEqual([
    ['Income:Chat:SpendAuthorizations', '1000000', 'SPEND-84532'],
    ['Income:Chat:Unknown', '-0.000100', 'CREDIT'],
    ['Income:Jobs:1:0', '0.002000', 'USDC-84532'],
    ['Income:Jobs:1:1', '0.004000', 'USDC-84532'],
    ['Income:Jobs:1:2', '0.003000', 'USDC-84532'],
  ]);
  expect(answer(8, 'quote', 'state', 'amount')).toEqual([
    [streamOf(unknown), 'settlement_unknown', '0.002000'],
  ]);
  expect(answer(9, 'quote', 'reason', 'amount', 'transaction')).toEqual([
    [streamOf(late), 'insufficient_funds', '0.003000', hex32Of('transaction 5')],
  ]);
  expect(answer(10, 'operator', 'quote', 'call_id', 'attempts', 'status')).toEqual([
    ['ada', streamOf(requeued), '4', 2, 'completed'],
  ]);
  const balances = answer(11, 'account', 'closing', 'commodity').map(([account, closing, commodity]) => ({
    account: String(account),
    closing: Number(closing),
    commodity: String(commodity),
  }));
  for (const [, ofOne] of Map.groupBy(balances, ({ commodity }) => commodity))
    expect(ofOne.reduce((sum, { closing }) => sum + Math.round(closing * 1e6), 0)).toBe(0);
  expect(
    balances.flatMap(({ account, closing }) =>
      account.startsWith('Liabilities:') ? [[account, closing]] : [],
    ),
  ).toEqual([
    ['Liabilities:PrepaidCredit:Bought', -0.0001],
    ['Liabilities:PrepaidCredit:Granted', -2.499_699],
    ['Liabilities:RefundsDue', -3.267],
    ['Liabilities:Undelivered', 0],
  ]);
  expect(answer(12, 'transaction', 'refused_with', 'state', 'refund_due')).toEqual([
    [eventExamples.payment_recovered.transaction, 'caller_not_permitted', 'settled', 'recovered'],
  ]);
  expect(answer(13, 'type', 'who')).toEqual([
    ['operator_requeued', 'ada'],
    ['refunded', 'ada'],
    ['operator_sweep_recorded', 'ada'],
    ['operator_config_loaded', null],
    ['operator_period_closed', 'ada'],
    ['operator_period_reviewed', 'bob'],
    ['credit_granted', 'ada'],
    ['credit_expired', 'token 1'],
  ]);
  expect(answer(14, 'catalog', 'service_id', 'job_index', 'was', 'now')).toEqual([
    [hex32Of('catalog'), '1', '2', '5', '6'],
  ]);
  expect(answer(15, 'type', 'operator', 'period_from', 'breaks')).toEqual([
    ['operator_period_closed', 'ada', new Date('2026-10-01'), 1],
    ['operator_period_reviewed', 'bob', new Date('2026-10-01'), null],
  ]);
  expect(answer(16, 'pay_to', 'swept_to', 'amount', 'symbol')).toEqual([
    [payTo, `0x${'77'.repeat(20)}`, '0.000101', 'USDC'],
  ]);
  expect([answers[16], answers[17]]).toEqual([[], []]);
  expect(answer(19, 'payments', 'atoms', 'payments_of_model', 'atoms_of_model', 'agree')).toEqual([
    ['8', '3277000', '8', '3277000', true],
  ]);
  const [account, ...more] = answers[19]!;
  expect(more).toEqual([]);
  expect(
    Object.entries(account!).map(([key, value]) => [
      key,
      Number.isNaN(Number(value)) ? value : Number(value),
    ]),
  ).toEqual([
    ['account_id', 7],
    ['name', 'acme'],
    ['granted', 2.5],
    ['topped_up', 4],
    ['captured', 0.0002],
    ['expired', 0.000_001],
  ]);
});

test('the questions about faults find a transfer that two payments claim, events that are missing, and a row that differs from its events', async () => {
  const database = await makeLedger();
  await database.asOwner(async (owner) => {
    await owner.query(`alter table tollbook.event disable trigger all`);
    await owner.query(
      `update tollbook.event set data = replace(replace(data, $2, $1), '"log_index":1', '"log_index":0')
        where type = 'payment_settled' and stream = tollbook.stream_key($3)`,
      [hex32Of('transaction 0'), hex32Of('transaction 1'), streamOf(alsoWhole)],
    );
    await owner.query(
      'delete from tollbook.event where stream = tollbook.stream_key($1) and version in (1, 2)',
      [streamOf(dead)],
    );
    await owner.query('delete from tollbook.event where seq = (select max(seq) from tollbook.event)');
    await owner.query('update tollbook.payment set amount = amount + 1 where seq = 3');
  });
  expect(pick(await ask(database, 17), 'transaction', 'log_index', 'quotes')).toEqual([
    [hex32Of('transaction 0'), '0', [streamOf(whole), streamOf(alsoWhole)].toSorted()],
  ]);
  expect(pick(await ask(database, 18), 'place', 'number', 'missing_before')).toEqual([
    ['ledger', '17', '2'],
    [streamOf(dead), '3', '2'],
    ['end of the ledger', String(all.flat().length), '1'],
  ]);
  expect(pick(await ask(database, 19), 'atoms', 'atoms_of_model', 'agree')).toEqual([
    ['3277000', '3277001', false],
  ]);
});

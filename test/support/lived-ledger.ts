import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { expect } from 'vitest';
import { issueApiKey } from '../../src/accounts/use-cases/api-keys.ts';
import { grantRole } from '../../src/accounts/use-cases/operators.ts';
import { issueOperatorToken } from '../../src/accounts/use-cases/operator-tokens.ts';
import { noteSigner } from '../../src/base/values/log/checkpoint.ts';
import type { EventData } from '../../src/ledger/rules/event.ts';
import { spendAuthDigest, authFromData } from '../../src/accounts/rules/spend/spend-auth.ts';
import { projectNext } from '../../src/audit/use-cases/projections/project.ts';
import {
  unexplainedTransferClaims,
  refundClaim,
  spendClaims,
  sweepClaim,
} from '../../src/payments/store/recorded-claims.ts';
import { storeReconciliation } from '../../src/audit/store/reconciliations.ts';
import { readHead } from '../../src/audit/store/log.ts';
import { collectFollowUps } from '../../src/payments/store/follow-ups.ts';
import { collectPayouts } from '../../src/chat/store/payouts.ts';
import { exposeSpend } from '../../src/chat/store/exposure.ts';
import { bytesToHex } from 'viem/utils';
import { callerHeaders, restrictedJobs } from './caller.ts';
import { admission, fund, laneOn, settlement } from './credit.ts';
import type { TestDatabase } from './database.ts';
import { rootOfEvents, sealAll } from './log.ts';
import { header, payFor, quoteAndSign } from './payer.ts';
import { hex32Of, sweepOf, transferOf } from './synthetic-ledger.ts';
import { buyCredit, fundedWallet } from './top-up.ts';
import { eventually } from './wait.ts';
import { configuredSecrets, startWholeGateway, type WholeGateway } from './whole-gateway.ts';
import type { TestChain } from './devnet.ts';

/** Signs its tree heads. */
export const livedSigner = noteSigner('jobs.example/log', [Buffer.from(configuredSecrets.LOG_KEY, 'hex')]);

const sellsCredit = `
[job_prices.9]
0 = "1000000000000000"
[[job_policies]]
service_id = 9
job_index = 0
invocation_mode = "public_paid"
[[top_ups]]
service_id = 9
job_index = 0
currency_per_token = { USDC = "1", EURC = "1.08" }
`;

const post = async (gateway: WholeGateway, path: string, body: unknown) => {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${configuredSecrets.RUNNER_TOKEN}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  });
  return response.json() as Promise<{ calls: { call_id: number; lease_id: string }[] }>;
};

/** A ledger with rows in every table that follows from events, and no gateway any more. */
export async function livedLedger(chain: TestChain): Promise<TestDatabase> {
  const gateway = await startWholeGateway(chain, { tables: sellsCredit, jobs: restrictedJobs(chain) });
  const { database } = gateway;
  const { pool } = database;
  const lane = laneOn(database);
  const accountId = await fund(database, lane, 1_000_000n);
  for (const name of ['one', 'two', 'three', 'four', 'five'])
    expect(await payFor(gateway, '/x402/jobs/1/3', name)).toMatchObject({ status: 202 });
  const payment = await quoteAndSign(gateway, '/x402/jobs/1/1', 'six');
  const headers = { ...header(payment), ...(await callerHeaders('six')) };
  expect(await gateway.post('/x402/jobs/1/1', { body: 'six', headers })).toMatchObject({ status: 202 });
  const { calls } = await post(gateway, '/runner/leases', { max: 4, lease_secs: 600, wait_secs: 5 });
  const [first, second, third] = calls;
  for (const { call_id, lease_id } of [first!, second!])
    await post(gateway, `/runner/calls/${call_id}/complete`, { lease_id, result: 'done' });
  await post(gateway, `/runner/calls/${third!.call_id}/fail`, {
    lease_id: third!.lease_id,
    error: 'no',
    retry: false,
  });
  await issueOperatorToken({ ...database, lane }, { name: 'ops', scopes: ['audit:read'], accounts: ['one'] });
  await issueApiKey({ ...database, lane }, { accountId, name: 'laptop' });
  await grantRole(
    { pool, lane },
    { name: 'ada', userId: await newUser(database), role: 'viewer', by: { name: 'boris', at: 'command' } },
  );
  const wallet = await fundedWallet(chain);
  await buyCredit(gateway.url, wallet.key);
  // a completion under way, a refund, a sweep, money without a payment, and a spend
  const chat = admission({ accountId, holdMicros: 1_000n });
  const [, ...held] = chat.events;
  const caller = { caller: 'api_key', account_id: accountId, model: 'small', streaming: false } as const;
  const admitted = { ...chat, events: [{ type: 'chat_admitted', data: caller } as const, ...held] };
  expect(await lane.appendCredit(admitted)).toMatchObject({ outcome: 'ok' });
  await appendUse(lane, accountId);
  await appendMoney(database, lane);
  await appendSpend(database, lane);
  await eventually(async () => expect(await leftToCollect(pool)).toBe(0));
  await gateway.stop();
  await collectPayouts(pool, 100);
  // an alert that no gateway sends any more
  await lane.append({
    stream: `payouts:eip155:84532`,
    events: [{ type: 'operator_payouts_postponed', data: postponed }],
  });
  await collectFollowUps(pool, 100);
  while ((await projectNext(pool, 500)) > 0);
  await sealAll(database, livedSigner);
  const head = (await readHead(pool, livedSigner.name))!;
  await pool.query('select tollbook.record_anchor($1, $2, $3)', [livedSigner.name, 'elsewhere', head.size]);
  const report = {
    period: { from: '2026-10-01T00:00:00Z', to: '2026-11-01T00:00:00Z' },
    ledger: { size: head.size, root: (await rootOfEvents(database, head.size)).toString('base64') },
    result: 'clean',
    breaks: 0,
    open_items: 0,
  };
  await storeReconciliation(pool, JSON.stringify(report));
  return database;
}

const postponed = {
  network: 'eip155:84532',
  contract: `0x${'5e'.repeat(20)}`,
  chat_id: randomUUID(),
  amount: '1000',
  reason: 'gas_too_expensive',
} as const;

/** Two completions that have ended, by two models. */
async function appendUse(lane: ReturnType<typeof laneOn>, accountId: number): Promise<void> {
  for (const model of ['small', 'large']) {
    const { admit, events, ...chat } = admission({ accountId, holdMicros: 1_000n });
    const [, ...held] = events;
    const caller = { caller: 'api_key', account_id: accountId, model, streaming: false } as const;
    const asked = { ...chat, admit, events: [{ type: 'chat_admitted', data: caller } as const, ...held] };
    const ended: EventData<'chat_completed'> = {
      upstream: 'one',
      model,
      ending: 'completed',
      prompt_tokens: 10,
      completion_tokens: 20,
      cost_micros: '300',
      is_estimate: false,
      first_byte_ms: 5,
      latency_ms: 9,
    };
    const settled = settlement(admit, 300n, 700n);
    const answered = {
      ...settled,
      events: [{ type: 'chat_completed', data: ended } as const, ...settled.events],
    };
    for (const step of [asked, answered])
      expect(await lane.appendCredit(step)).toMatchObject({ outcome: 'ok' });
  }
}

/** The id of a user who can be an operator. */
async function newUser({ asOwner }: TestDatabase): Promise<string> {
  const id = randomUUID();
  await asOwner((owner) =>
    owner.query(
      `insert into identity."user" (id, name, email, email_verified, created_at, updated_at)
        values ($1, 'Ada', 'ada@jobs.example', true, now(), now())`,
      [id],
    ),
  );
  return id;
}

async function leftToCollect(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ left: number }>(
    `select (select max(seq) from tollbook.event) - min(seq) as left from tollbook.ledger_cursor where name = 'follow_up'`,
  );
  return rows[0]?.left ?? 0;
}

async function appendMoney(database: TestDatabase, lane: ReturnType<typeof laneOn>): Promise<void> {
  const { rows } = await database.pool.query<{ stream: string; version: number; data: string }>(
    `select tollbook.stream_name(stream) as stream, data,
      (select max(version) from tollbook.event last where last.stream = event.stream) as version
      from tollbook.event where type = 'payment_settled' order by seq`,
  );
  // the third payment is that of the dead letter
  const { stream, version, data } = rows[2]!;
  const settled = JSON.parse(data) as EventData<'payment_settled'>;
  const { network, asset, payer, payment_nonce, amount } = settled;
  const place = {
    transaction: hex32Of('refund'),
    block_number: '9000',
    block_hash: hex32Of('b'),
    log_index: 2,
  };
  const refunded = {
    network,
    asset,
    payer,
    payment_nonce,
    amount,
    refunded_from: `0x${'90'.repeat(20)}`,
    refunded_to: payer,
    ...place,
    operator: 'ada',
  };
  const appended = [
    await lane.append({
      stream,
      expect: version,
      events: [{ type: 'refunded', data: refunded }],
      claims: [refundClaim({ ...place, network }, payment_nonce)],
    }),
  ];
  const sweep = sweepOf(1);
  if (sweep.event.type !== 'operator_sweep_recorded') throw new Error('no sweep');
  appended.push(
    await lane.append({
      stream: sweep.stream,
      events: [sweep.event],
      claims: [sweepClaim(sweep.event.data)],
    }),
  );
  const unexplainedTransfer = transferOf(1);
  if (unexplainedTransfer.event.type !== 'operator_transfer_recorded') throw new Error('no transfer');
  appended.push(
    await lane.append({
      stream: unexplainedTransfer.stream,
      events: [unexplainedTransfer.event],
      claims: unexplainedTransferClaims(unexplainedTransfer.event.data),
    }),
  );
  expect(appended.map(({ outcome }) => outcome)).toEqual(['ok', 'ok', 'ok']);
}

async function appendSpend(database: TestDatabase, lane: ReturnType<typeof laneOn>): Promise<void> {
  const chatId = randomUUID();
  const facts = {
    chat_id: chatId,
    network: 'eip155:84532',
    contract: `0x${'5e'.repeat(20)}`,
    commitment: hex32Of('account'),
    nonce: '1',
    auth_hash: hex32Of('authorization'),
    operator: `0x${'90'.repeat(20)}`,
    amount: '1000',
  } as const;
  const accepted: EventData<'spend_accepted'> = {
    ...facts,
    service_id: '1',
    job_index: 0,
    expiry: '1900000000',
    signature: `0x${'c0'.repeat(65)}`,
    binding: hex32Of('binding'),
    process_id: randomUUID(),
  };
  const domain = { chainId: 84_532, contract: facts.contract };
  const auth = authFromData(accepted);
  const claims = spendClaims(domain, auth, bytesToHex(spendAuthDigest(domain, auth)), accepted.binding);
  const stream = `spend:${chatId}`;
  const appended = await lane.append({
    stream,
    expect: 0,
    events: [
      { type: 'spend_accepted', data: accepted },
      { type: 'spend_earned', data: facts },
    ],
    claims: [claims.request, claims.nonce],
  });
  expect(appended.outcome).toBe('ok');
  await exposeSpend(database.pool, {
    stream,
    scope: claims.nonce.scope,
    commitment: facts.commitment,
    nonce: 1n,
    amount: 1_000n,
    limit: 5_000n,
    nextNonce: 1n,
    balance: 5_000n,
  });
}

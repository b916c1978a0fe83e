import { createServer, type IncomingHttpHeaders } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { grantCredit, openCreditAccount } from '../../../src/accounts/use-cases/credit/credit.ts';
import { takeBudgetMessages } from '../../../src/accounts/store/budget-alerts.ts';
import { findApiKeyById } from '../../../src/accounts/store/api-keys.ts';
import { admission, codeOf, laneOn, settle } from '../../support/credit.ts';
import { createDatabase } from '../../support/database.ts';
import { documentOf } from '../../support/documented.ts';
import { type IdentityGateway, signIn, signUp, startIdentityGateway } from '../../support/identity.ts';
import { eventually } from '../../support/wait.ts';
import { listening } from '../../support/listening.ts';

describe('the budget of a key', () => {
  test('is reported at 50, 80 and 100 percent by mail and signed webhook, once each, also after a failure', async () => {
    const gateway = await startIdentityGateway();
    const browser = gateway.browser();
    await signUp(gateway, browser, 'ada@example.org');
    await signIn(browser, 'ada@example.org');
    const check = await documentOf(gateway);
    const received: { headers: IncomingHttpHeaders; body: string }[] = [];
    let isFailing = true;
    const receiver = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => (body += String(chunk)));
      request.on('end', () => {
        response.statusCode = isFailing ? 500 : 204;
        if (!isFailing) received.push({ headers: request.headers, body });
        isFailing = false;
        response.end();
      });
    });
    const at = await listening(receiver);
    const url = `${at}/alerts`;
    const set = await browser.post('/api/alert-webhook', { url });
    expect(check('POST', '/api/alert-webhook', set)).toEqual([]);
    expect((await browser.get('/api/alert-webhook')).json).toEqual({ url });
    for (const wrong of [
      'http://example.org/',
      'https://10.0.0.1/',
      'https://[::ffff:7f00:1]/',
      'file:///etc/passwd',
    ])
      expect([wrong, (await browser.post('/api/alert-webhook', { url: wrong })).status]).toEqual([
        wrong,
        400,
      ]);
    const { json: made } = await browser.post('/api/keys', {
      name: 'bot',
      budget: { amount: '0.001', period: 'month' },
    });
    const [listed] = (await browser.get('/api/keys')).json.keys;
    expect(listed.budget).toMatchObject({ amount: '0.001', period: 'month', spent: '0', remaining: '0.001' });
    const { database } = gateway;
    const accountId = listed && (await accountOfKey(database, made.id));
    const lane = laneOn(database);
    await grantCredit({ ...database, lane }, accountId, 1_000_000n);
    const spendMicros = async (micros: bigint) => {
      const { admit, ...command } = admission({ accountId, keyId: made.id, holdMicros: micros });
      const code = codeOf(await lane.appendCredit({ ...command, admit }));
      if (code === 'ok') await settle(lane, admit, micros, 0n);
      return code;
    };
    for (const micros of [400n, 100n, 1n, 299n, 150n]) expect(await spendMicros(micros)).toBe('ok');
    expect(await spendMicros(100n)).toBe('key_budget_reached');
    expect(await spendMicros(100n)).toBe('key_budget_reached');
    await eventually(() =>
      expect(
        received.map(({ body }) => Number(JSON.parse(body).data.percent)).toSorted((a, b) => a - b),
      ).toEqual([50, 80, 100]),
    );
    const verifier = new Webhook(set.json.secret);
    for (const { headers, body } of received)
      expect(verifier.verify(body, headers as Record<string, string>)).toMatchObject({
        type: 'key_budget.used',
        data: {
          key_name: 'bot',
          period: 'month',
          budget: '0.001',
          starts_anew_at: listed.budget.starts_anew_at,
        },
      });
    const mails = (await gateway.mails('ada@example.org', 4)).filter((mail) => mail.includes('budget'));
    expect(mails.map((mail) => /used (?:up|to \d+ %)/.exec(mail)?.[0])).toEqual([
      'used to 50 %',
      'used to 80 %',
      'used up',
    ]);
    const { rows } = await database.pool.query(`select from tollbook.task where kind = 'budget_message'`);
    expect(rows).toEqual([]);
    expect((await browser.request('DELETE', '/api/alert-webhook')).json).toEqual({ url: null });
  });
});

test('of each account messages about budgets are taken in turn, and at most two of one, whose receiver may never answer', async () => {
  const database = await createDatabase();
  const { pool } = database;
  const ledger = { pool, lane: laneOn(database) };
  const put = (accountId: number, count: number) =>
    database.asOwner((owner) =>
      owner.query(
        `insert into tollbook.task (kind, queue, key, created_at, ok_at, due_at, payload)
         select 'budget_message', 'webhook', gen_random_uuid()::text, now(), now(), now(),
           json_build_object('account_id', $1::bigint, 'key_id', 1, 'percent', 50, 'used', 1, 'budget', 2,
             'budget_period', 'day', 'budget_from', '2026-11-20')
         from generate_series(1, $2)`,
        [accountId, count],
      ),
    );
  const accounts: number[] = [];
  for (const name of ['user:tarpit', 'user:ada', 'user:eve'])
    accounts.push(await openCreditAccount(ledger, name));
  const [tarpit = 0, ada = 0, eve = 0] = accounts;
  await put(tarpit, 40);
  await put(ada, 3);
  await put(eve, 1);
  const take = async (max: number) =>
    (await takeBudgetMessages(pool, 'webhook', max))
      .map(({ account_id: id }) => id)
      .toSorted((a, b) => a - b);
  expect(await take(3)).toEqual([tarpit, ada, eve]);
  expect(await take(16)).toEqual([tarpit, tarpit, ada, ada]);
  expect(await take(16)).toEqual([tarpit, tarpit]);
  expect(await takeBudgetMessages(pool, 'mail', 1)).toEqual([]);
});

async function accountOfKey({ db }: IdentityGateway['database'], keyId: number): Promise<number> {
  const key = await findApiKeyById(db, keyId);
  if (!key) throw new Error('there is no such key');
  return key.accountId;
}

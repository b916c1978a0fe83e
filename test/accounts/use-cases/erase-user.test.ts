import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  expireCredit,
  findCreditAccount,
  grantCredit,
} from '../../../src/accounts/use-cases/credit/credit.ts';
import { eraseUser } from '../../../src/accounts/use-cases/erase-user.ts';
import { subjectsOf } from '../../../src/accounts/use-cases/sign-in-limits.ts';
import { setUserDisabled } from '../../../src/accounts/use-cases/users.ts';
import { openWalletUser } from '../../../src/accounts/use-cases/wallet-user.ts';
import { eraseMails } from '../../../src/base/peers/mail/mailer.ts';
import { accountNameOf, findUserIds, openUserAccount } from '../../../src/accounts/store/identity.ts';
import { topUp } from '../../../src/jobs/use-cases/top-ups/top-up.ts';
import { admission, codeOf, expectBooks, laneOn } from '../../support/credit.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { dumpDatabase } from '../../support/database-dump.ts';
import { goodPassword, newWallet, signIn, signUp, startIdentityGateway } from '../../support/identity.ts';
import { tollbook } from '../../support/program.ts';

const log = { info: () => {}, warn: () => {}, error: () => {} };
const email = 'ada.lovelace@example.org';
const asked = { operator: 'grace', forfeits: false, withResults: false };

async function userWithWallet() {
  const database = await createDatabase();
  const ledger = { ...database, lane: laneOn(database), log };
  const wallet = newWallet().address.toLowerCase() as `0x${string}`;
  const userId = await openWalletUser(database.pool, { address: wallet });
  const { accountId } = await openUserAccount(database.pool, userId);
  return { database, ledger, wallet, userId, accountId };
}

const paidBy = (payer: string, callId: number) => ({
  call_id: callId,
  quote_digest: `0x${'1'.repeat(64)}`,
  network: 'eip155:84532',
  asset: `0x${'2'.repeat(40)}`,
  symbol: 'USDC',
  decimals: 6,
  atoms: '5000000',
  payer,
});

async function closedAccounts({ pool }: TestDatabase): Promise<number> {
  return (await pool.query('select from tollbook.account where closed_at is not null')).rowCount ?? 0;
}

test('an erased person is nowhere in the database, mails and ledger, and the ledger stays sound', async () => {
  const gateway = await startIdentityGateway();
  const { database, mailDir } = gateway;
  const env = { DATABASE_URL: database.url };
  const browser = gateway.browser('203.0.113.77');
  await signUp(gateway, browser, email);
  const { json: signed } = await signIn(browser, email);
  await browser.post('/api/auth/request-password-reset', { email });
  await signIn(gateway.browser('203.0.113.77'), email, 'a wrong password');
  const { json: key } = await browser.post('/api/keys', { name: 'laptop-of-lovelace' });
  const other = gateway.browser();
  await signUp(gateway, other, 'grace@example.org');
  await signIn(other, 'grace@example.org');
  const ledger = { ...database, lane: laneOn(database) };
  const accountId = (await findCreditAccount(ledger, `user:${signed.user.id}`)) ?? 0;
  await grantCredit(ledger, accountId, 2_500_000n, { requestId: 'invoice-lovelace-1' });

  const refused = await tollbook(['users', 'erase', email, '--by', 'grace'], env);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('has 2.5 of credit') as string });
  expect((await browser.get('/api/keys')).status).toBe(200);

  const erased = await tollbook(['users', 'erase', email, '--forfeit', '--by', 'grace'], env);
  expect(erased.stdout).toContain(`User ${signed.user.id} is erased`);
  expect(erased.stdout).toContain('Credit that expired: 2.5.');
  expect(await eraseMails(mailDir, email)).toBe(2);
  expect(await eraseMails(mailDir, email)).toBe(0);
  const marks = [email, 'lovelace', ...subjectsOf(email)];
  const { text } = await dumpDatabase(database);
  for (const mark of marks) expect(text.toLowerCase()).not.toContain(mark.toLowerCase());
  expect(text).toContain('grace@example.org');
  const [byKey, bySession, byPassword] = [
    await gateway.browser().get('/v1/credits', { authorization: `Bearer ${key.key}` }),
    await browser.get('/api/keys'),
    await signIn(gateway.browser(), email),
  ];
  expect([byKey.status, bySession.status, byPassword.status]).toEqual([401, 401, 401]);
  expect((await other.get('/api/keys')).status).toBe(200);
  expect(await eraseUser(ledger, { ...asked, who: email })).toEqual({ kind: 'unknown' });
  const events = await expectBooks(database);
  const ofUser = events.filter(({ stream }) => stream === `user:${signed.user.id}`);
  expect(ofUser.map(({ type }) => type)).toEqual(['user_disabled', 'user_erased']);
  expect(ofUser.at(-1)?.data).toEqual({ user_id: signed.user.id, operator: 'grace' });
  const count = (type: string) => events.filter((event) => event.type === type).length;
  expect([count('credit_expired'), count('key_revoked'), count('session_ended')]).toEqual([1, 1, 1]);
  expect(JSON.stringify(events)).not.toMatch(/@|203\.0\.113|Ada|127\.0\.0\.1/);

  // the address is free for a new person
  await signUp(gateway, gateway.browser(), email);
  const { json: anew } = await signIn(gateway.browser(), email, goodPassword);
  expect(anew.user.id).not.toBe(signed.user.id);
});

test('a user with a completion that runs is not erased, and nothing of the user is changed', async () => {
  const { ledger, database, userId, accountId } = await userWithWallet();
  await grantCredit(ledger, accountId, 500n);
  const held = admission({ accountId, holdMicros: 400n });
  expect(codeOf(await ledger.lane.appendCredit(held))).toBe('ok');
  for (const forfeits of [false, true])
    expect(await eraseUser(ledger, { ...asked, who: userId, forfeits })).toMatchObject({ kind: 'busy' });
  expect(await setUserDisabled(ledger, { who: userId, operator: 'grace', isDisabled: false })).toMatchObject({
    kind: 'unchanged',
  });
  expect(await closedAccounts(database)).toBe(0);
});

test('credit that is granted while its user is erased is spent, forfeited on record or refused, never lost', async () => {
  const { ledger, database, userId, accountId } = await userWithWallet();
  const grants = Array.from({ length: 60 }, () => grantCredit(ledger, accountId, 7n));
  const erasing = eraseUser(ledger, { ...asked, who: userId, forfeits: true });
  const granted = (await Promise.all(grants)).filter(({ kind }) => kind === 'moved').length;
  expect(await erasing).toMatchObject({ kind: 'erased' });
  expect(await grantCredit(ledger, accountId, 7n)).toEqual({ kind: 'not_allowed' });
  expect(await expireCredit(ledger, accountId, 7n)).toEqual({ kind: 'not_allowed' });
  const events = await expectBooks(database);
  const forfeited = events.flatMap((event) =>
    event.type === 'credit_expired' ? Number(event.data.amount_micros) : [],
  );
  expect(forfeited.reduce((sum, micros) => sum + micros, 0)).toBe(7 * granted);
  expect(events.filter(({ type }) => type === 'user_erased')).toHaveLength(1);
});

test('an erasure that was interrupted is completed when it is repeated, with one event and no way back', async () => {
  const { ledger, database, userId, accountId, wallet } = await userWithWallet();
  await ledger.lane.appendCredit({
    stream: `user:${userId}`,
    events: [{ type: 'user_erased', data: { user_id: userId, operator: 'grace' } }],
    credit: { op: 'close', accountId },
  });
  expect(await findUserIds(database.pool, wallet)).toEqual([userId]);
  expect(await setUserDisabled(ledger, { who: wallet, operator: 'ada', isDisabled: false })).toMatchObject({
    kind: 'unchanged',
  });
  const both = await Promise.all([1, 2].map(() => eraseUser(ledger, { ...asked, who: wallet })));
  expect(both.map(({ kind }) => kind)).toContain('erased');
  expect(await findUserIds(database.pool, wallet)).toEqual([]);
  const events = await expectBooks(database);
  expect(events.filter(({ stream }) => stream === `user:${userId}`).map(({ type }) => type)).toEqual([
    'user_erased',
  ]);
});

test('a top-up of a wallet whose user is erased goes to a new user of the wallet', async () => {
  const { ledger, userId, accountId, wallet } = await userWithWallet();
  await ledger.lane.appendCredit({
    stream: `user:${userId}`,
    events: [{ type: 'user_erased', data: { user_id: userId, operator: 'grace' } }],
    credit: { op: 'close', accountId },
  });
  await expect(topUp(ledger, paidBy(wallet, 3), 5n)).rejects.toThrow(/is tried again/);
  expect(await eraseUser(ledger, { ...asked, who: userId })).toMatchObject({ kind: 'erased' });
  const given = await topUp(ledger, paidBy(wallet, 3), 5n);
  expect(given).toMatchObject({ kind: 'credited', balanceMicros: 5n });
  expect(given).not.toMatchObject({ account: accountNameOf(userId) });
});

test('results that a wallet paid for are deleted only on request, and never of a call that waits', async () => {
  const { ledger, database, userId, wallet } = await userWithWallet();
  await openUserAccount(database.pool, randomUUID());
  await database.asOwner((owner) =>
    owner.query(
      `insert into tollbook.payment (generation, decimals, seq, last_seq, at, call_id, network, asset, symbol, amount, payer, pay_to, state)
        select 1, 6, n, n, now(), n, 'n', '', 'USDC', 1, case when n < 300 then tollbook.hex_bytes('${wallet}') else '' end, '', 'completed'
        from generate_series(1, 310) n;
      select tollbook.put_result(n, 1, gen_random_uuid(), null, 'a') from generate_series(1, 310) n;
      insert into tollbook.call (stream, service_id, job_index, status, body_id, network, asset, symbol, payment, due_at, created_at)
        values ('s', 1, 0, 'dead', gen_random_uuid(), 'n', 'a', 'USDC', 'p', now(), now())`,
    ),
  );
  const left = async () => (await database.pool.query('select from tollbook.call_result')).rowCount;
  expect(await eraseUser(ledger, { ...asked, who: userId, withResults: true })).toMatchObject({
    resultsDeleted: 298,
  });
  expect(await left()).toBe(12);
  expect((await database.pool.query('select from tollbook.deleted_result')).rowCount).toBe(298);
});

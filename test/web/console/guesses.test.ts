import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { base32 } from '../../../src/accounts/rules/totp.ts';
import { recordSession, sessionTokenHash } from '../../../src/accounts/use-cases/sessions.ts';
import { keepTotp } from '../../../src/accounts/use-cases/second-factor.ts';
import { signedValue } from '../../../src/accounts/use-cases/signed-values.ts';
import { takeGuess } from '../../../src/ledger/store/factor-guesses.ts';
import {
  browserOf,
  codeOf,
  type SignedInOperator,
  signInOperator,
  startConsole,
} from '../../support/console.ts';
import { laneOn } from '../../support/credit.ts';
import { type Browser, createBrowser, identitySecret, type IdentityGateway } from '../../support/identity.ts';
import { formsIn, postForm, sendForm } from '../../support/site.ts';
import { eventually } from '../../support/wait.ts';

const wrong = { code: '000000' };
const page = '/console/second-factor';

/** An operator with an authenticator app, who has signed in with the password alone. */
async function start(): Promise<{
  readonly gateway: IdentityGateway;
  readonly ada: SignedInOperator;
  readonly secret: string;
}> {
  const gateway = await startConsole();
  const ada = await signInOperator(gateway);
  const { pool } = gateway.database;
  const secret = randomBytes(20);
  const ledger = { pool, lane: laneOn(gateway.database), settings: { secrets: [identitySecret] as const } };
  await keepTotp(ledger, ada, secret, 0);
  return { gateway, ada, secret: base32(secret) };
}

/** A browser that has signed in with the password: its own session. */
async function withPassword(
  { database, url }: IdentityGateway,
  { userId }: SignedInOperator,
  address: string,
): Promise<Browser> {
  const sessionId = crypto.randomUUID();
  const token = `token-${sessionId}`;
  const expiresAt = new Date(Date.now() + 86_400_000);
  await database.pool.query(
    `insert into identity.session (id, user_id, token, expires_at, created_at, updated_at) values ($1, $2, $3, $4, now(), now())`,
    [sessionId, userId, sessionTokenHash(token), expiresAt],
  );
  const session = { sessionId, userId, method: 'password', expiresAt } as const;
  await recordSession({ lane: laneOn(database) }, session);
  const browser = createBrowser(url, address);
  browser.cookies.set('tollbook.session_token', signedValue([identitySecret], token));
  return browser;
}

/** Guesses from ever new sessions and addresses, more than are free for the whole account. */
async function attack(gateway: IdentityGateway, ada: SignedInOperator): Promise<number> {
  let taken = 0;
  const beganMs = performance.now();
  for (let session = 0; session < 40; session++) {
    const guesser = await withPassword(gateway, ada, `198.51.100.${session}`);
    const { status } = await sendForm(guesser, page, wrong);
    if (status === 403) taken += 1;
  }
  return taken - mostAfterWaits(beganMs);
}

/** The first wait is 2 seconds long, and each guess after it makes it twice as long: so many guesses a slow machine may have waited for. */
function mostAfterWaits(beganMs: number): number {
  return Math.floor(Math.log2(1 + (performance.now() - beganMs) / 2_000));
}

/** Makes the waits under way of some subjects an hour long: a slow machine lets none of them end. */
async function lengthenWaits({ database }: IdentityGateway, subjects: string): Promise<void> {
  const all = 'update identity.factor_guess set guesses = guesses + 20 where subject like $1';
  await database.pool.query(all, [subjects]);
}

test('who has the password guesses at most a hundred codes in a day, from any number of sessions and clients', async () => {
  const { gateway, ada } = await start();
  const { pool } = gateway.database;
  let guesses = 0;
  let waitedMs = 0;
  for (let session = 0; waitedMs < 86_400_000; session++) {
    const { waitMs } = await takeGuess(pool, ada.userId, [
      { subject: `session:${session}`, free: 3 },
      { subject: `ip:${session}`, free: 5 },
      { subject: 'account', free: 20 },
    ]);
    if (waitMs === 0) guesses += 1;
    else await gateway.database.moveClock(Math.ceil((waitedMs += waitMs) / 1_000));
  }
  expect(guesses).toBeGreaterThan(20);
  expect(guesses).toBeLessThan(100);
});

test('of simultaneous guesses none precedes the count of another: three of twenty in one session are looked at', async () => {
  const { gateway, ada } = await start();
  const guesser = await withPassword(gateway, ada, '198.51.100.1');
  const { fields = {} } = formsIn((await guesser.get(page)).text).find(({ action }) => action === page) ?? {};
  const beganMs = performance.now();
  const sent = Array.from({ length: 20 }, () => postForm(guesser, page, { ...fields, ...wrong }));
  const statuses = (await Promise.all(sent)).map(({ status }) => status);
  const taken = statuses.filter((status) => status === 403).length;
  expect(statuses.filter((status) => status === 429)).toHaveLength(20 - taken);
  expect(taken).toBeGreaterThan(2);
  expect(taken).toBeLessThan(4 + mostAfterWaits(beganMs));
});

test('a guesser with the password does not lock the owner out: neither elsewhere, nor on a known device, nor with a recovery code', async () => {
  const { gateway, ada, secret } = await start();
  const guesser = await withPassword(gateway, ada, '198.51.100.1');
  for (let guess = 0; guess < 6; guess++) await sendForm(guesser, page, wrong);
  await lengthenWaits(gateway, 'session:%');
  expect((await sendForm(guesser, page, wrong)).status).toBe(429);
  // another browser at another address
  const owner = await withPassword(gateway, ada, '203.0.113.1');
  // one code for both tries: the attack between them may take longer than a code's 30 seconds
  const used = codeOf(secret);
  expect((await sendForm(owner, page, { code: used })).status).toBe(303);
  // from so many places that the whole account waits
  const taken = await attack(gateway, ada);
  expect(taken).toBeLessThan(21);
  await lengthenWaits(gateway, 'account');
  const unknown = await withPassword(gateway, ada, '203.0.113.2');
  expect((await sendForm(unknown, page, wrong)).status).toBe(429);
  owner.cookies.delete('tollbook.console');
  // the code was used; its number is looked at all the same
  expect((await sendForm(owner, page, { code: used })).status).toBe(403);
  const later = Date.now() + 30_000;
  expect((await sendForm(owner, page, { code: codeOf(secret, later) })).status).toBe(303);
  const recovering = await withPassword(gateway, ada, '203.0.113.3');
  expect((await sendForm(recovering, page, { code: 'ABCD EFGH ABCD EFGH' })).status).toBe(403);
});

test('a passkey is looked at however many codes and passkeys were wrong', async () => {
  const { gateway, ada } = await start();
  const guesser = await withPassword(gateway, ada, '198.51.100.1');
  const { fields = {} } = formsIn((await guesser.get(page)).text).find(({ action }) => action === page) ?? {};
  for (let guess = 0; guess < 6; guess++) await postForm(guesser, page, { ...fields, ...wrong });
  const statuses = new Set<number>();
  for (let guess = 0; guess < 36; guess++)
    statuses.add((await postForm(guesser, `${page}/passkey`, { ...fields, credential: 'x' })).status);
  expect([...statuses]).toEqual([403]);
});

test('the account’s owner gets a mail, and the other operators see it on the overview', async () => {
  const { gateway, ada } = await start();
  const admin = browserOf(gateway, await signInOperator(gateway, { name: 'root' }));
  await attack(gateway, ada);
  const [mail] = await gateway.mails('ada@example.org');
  expect(mail).toContain('Somebody guesses your second factor');
  await eventually(async () => expect((await admin.get('/console')).text).toContain('factor guessed'));
});

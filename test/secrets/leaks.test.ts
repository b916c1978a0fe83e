import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { Hex } from '../../src/base/values/primitives.ts';
import { signCall, verifyCall } from '../../src/base/values/call-signature.ts';
import { issueApiKey } from '../../src/accounts/use-cases/api-keys.ts';
import { issueOperatorToken } from '../../src/accounts/use-cases/operator-tokens.ts';
import { signedValue } from '../../src/accounts/use-cases/signed-values.ts';
import { fund, laneOn } from '../support/credit.ts';
import { dumpDatabase, spellings } from '../support/database-dump.ts';
import { useChain } from '../support/devnet.ts';
import { createBrowser, goodPassword } from '../support/identity.ts';
import { logLines } from '../support/log-lines.ts';
import { header, quoteAndSign } from '../support/payer.ts';
import { eventually } from '../support/wait.ts';
import { configuredSecrets, startWholeGateway, type WholeGateway } from '../support/whole-gateway.ts';
import { listening } from '../support/listening.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const email = 'ada@example.org';
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const asJson = { 'content-type': 'application/json' };

/** What a client, a user, a runner and an operator got from a gateway. */
interface Issued {
  readonly apiKey: string;
  readonly operatorToken: string;
  readonly offerSecret: string;
  readonly quoteMac: string;
  readonly receiptToken: string;
  readonly receiptPath: string;
  readonly digest: Hex;
  readonly session: string;
  readonly links: readonly string[];
}

/** Each answer as text: status line, headers and body. */
function recorder() {
  const answers: string[] = [];
  const seen = async (response: Response): Promise<{ readonly status: number; readonly text: string }> => {
    const text = await response.text();
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`);
    answers.push([response.status, ...headers, text].join('\n'));
    return { status: response.status, text };
  };
  return { answers, seen };
}

/** Uses all parts of a gateway once, rightly and wrongly. `seen` gets the answers that issue nothing. */
async function useAll(
  gateway: WholeGateway,
  seen: (response: Response) => Promise<unknown>,
): Promise<Issued> {
  const { database, url } = gateway;
  const get = (where: string, headers = {}) => fetch(url + where, { headers }).then(seen);
  const post = (where: string, body: unknown, headers = {}) =>
    fetch(url + where, {
      method: 'POST',
      headers: { ...asJson, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    }).then(seen);
  const lane = laneOn(database);
  const accountId = await fund(database, lane, 1_000_000_000n);
  const { key: apiKey } = await issueApiKey({ ...database, lane }, { accountId, name: 'of a test' });
  const scopes = ['audit:read', 'calls:read', 'calls:write', 'keys:read'] as const;
  const { token: operatorToken } = await issueOperatorToken({ ...database, lane }, { name: 'ops', scopes });

  // a paid job from its quote to its result
  await post(job, 'x');
  const payment = await quoteAndSign(gateway, job, 'a body');
  const offerSecret = payment.accepted.extra['offerSecret'] ?? '';
  expect(offerSecret).toMatch(/^[\w-]{43}$/);
  const { mac: quoteMac } = payment.accepted.extra['quote'] as unknown as { mac: string };
  expect(quoteMac).toMatch(/^[\w-]{43}$/);
  const paid = await gateway.post(job, { body: 'a body', headers: header(payment) });
  const receiptToken = String(paid.json.receipt_token);
  const digest = paid.json.quote_digest as Hex;
  const receiptPath = `/x402/receipts/${digest}`;
  for (const token of [configuredSecrets.RUNNER_TOKEN, configuredSecrets.SECOND_RUNNER_TOKEN, 'wrong']) {
    await post('/runner/leases', { max: 1, lease_secs: 60 }, bearer(token));
    await post('/runner/calls/1/complete', '{', bearer(token));
  }
  for (const token of [receiptToken, 'wrong']) {
    await get(receiptPath, bearer(token));
    await get(`/log/proof?quote_digest=${digest}`, bearer(token));
  }
  await get(`/x402/receipts/${receiptToken}`);

  // chat
  const ask = { model: 'devnet-small', messages: [{ role: 'user', content: 'hi' }] };
  for (const token of [apiKey, 'sk-wrong']) {
    await post('/v1/chat/completions', ask, bearer(token));
    await post('/v1/chat/completions', { ...ask, stream: true }, bearer(token));
    await post('/v1/chat/completions', '{', bearer(token));
    await get('/v1/credits', bearer(token));
  }
  await get('/v1/models');

  // user accounts
  const browser = createBrowser(url, '203.0.113.1');
  await browser.post('/api/auth/sign-up/email', { email, password: goodPassword, name: 'Ada' });
  const mails = (): string[] =>
    readdirSync(gateway.mailDir).map((name) => readFileSync(path.join(gateway.mailDir, name), 'utf8'));
  const links = (): string[] =>
    mails().flatMap((mail) => [...mail.matchAll(/^https?:\S+$/gm)].map(([link]) => link));
  await eventually(() => expect(links()).toHaveLength(1));
  await browser.get(links()[0] ?? '');
  await browser.post('/api/auth/sign-in/email', { email, password: 'a wrong password' });
  expect(await browser.post('/api/auth/sign-in/email', { email, password: goodPassword })).toMatchObject({
    status: 200,
  });
  await browser.post('/api/auth/request-password-reset', { email });
  await eventually(() => expect(mails()).toHaveLength(2));
  const session = browser.cookies.get('tollbook.session_token') ?? '';
  await get('/api/keys', { cookie: `tollbook.session_token=${session}` });
  await get('/api/auth/reset-password/a-wrong-token');

  // operator, log, status
  for (const token of [operatorToken, 'wrong'])
    for (const where of ['/audit/payments', '/audit/totals', '/operator/calls/dead', '/operator/keys'])
      await get(where, bearer(token));
  for (const where of [
    '/log/checkpoint',
    '/x402/ready',
    '/status',
    '/x402/stats',
    '/openapi.json',
    '/nowhere',
  ])
    await get(where);
  await lane.close();
  return {
    apiKey,
    operatorToken,
    offerSecret,
    quoteMac,
    receiptToken,
    receiptPath,
    digest,
    session,
    links: mails(),
  };
}

/** A secret in the forms in which a program could have written it. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [
    secret,
    encodeURIComponent(secret),
    bytes.toString('hex'),
    bytes.toString('base64').replace(/=+$/, ''),
  ];
}

const found = (text: string, secrets: Readonly<Record<string, string>>): string[] =>
  Object.entries(secrets).flatMap(([name, secret]) =>
    formsOf(secret).some((form) => text.includes(form)) ? [name] : [],
  );

test('no secret appears in a log line, an answer, an error or the database of a full run', async () => {
  const log = logLines();
  log.logger.level = 'debug';
  const { answers, seen } = recorder();
  // an upstream that repeats the key in its error, as some do
  const upstream = createServer(({ headers }, response) => {
    response.writeHead(401, asJson);
    response.end(
      JSON.stringify({ error: { message: `Incorrect API key provided: ${headers.authorization}` } }),
    );
  });
  const at = await listening(upstream);
  const gateway = await startWholeGateway(chain, {
    logger: log.logger,
    upstreamUrl: `${at}/v1`,
  });
  const issued = await useAll(gateway, seen);
  await gateway.stop();
  const tokensInMails = issued.links.flatMap((mail) => mail.match(/[\w.-]{24,}(?=[&\s])/g) ?? []);
  const ofClients = {
    apiKey: issued.apiKey,
    operatorToken: issued.operatorToken,
    receiptToken: issued.receiptToken,
    offerSecret: issued.offerSecret,
    quoteMac: issued.quoteMac,
    sessionToken: issued.session.split('.')[0] ?? '',
    password: goodPassword,
    ...Object.fromEntries(tokensInMails.map((token, index) => [`mail ${index}`, token])),
  };
  const logged = JSON.stringify(log.lines);
  expect(log.lines.length).toBeGreaterThan(30);
  expect(found(logged, configuredSecrets)).toEqual([]);
  // the path of a request is logged, and one request has the receipt token in it
  expect(found(logged.replaceAll(`/x402/receipts/${issued.receiptToken}`, ''), ofClients)).toEqual([]);
  expect(answers.length).toBeGreaterThan(30);
  expect(found(answers.join('\n'), configuredSecrets)).toEqual([]);
  expect(found(answers.join('\n'), ofClients)).toEqual([]);
  expect(answers.join('\n')).not.toMatch(/ {4}at |node:internal|\.ts:\d+/);
  const { text } = await dumpDatabase(gateway.database);
  expect(found(text, configuredSecrets)).toEqual([]);
  expect(found(text, ofClients)).toEqual([]);
});

const macOf = (key: string | Buffer, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url');

test('with a dump of the whole database one can neither sign in, use a key, read a receipt nor push a call', async () => {
  const gateway = await startWholeGateway(chain);
  const issued = await useAll(gateway, async (response) => response.text());
  const { values } = await dumpDatabase(gateway.database);
  let address = 0;
  // each attempt comes from its own address, so that no limit answers in place of the check
  const from = () => ({ 'x-forwarded-for': `198.18.${(address += 1) >> 8}.${address & 255}` });
  const status = async (where: string, headers: Record<string, string>, body?: unknown) => {
    const response = await fetch(gateway.url + where, {
      headers: { ...from(), ...(body === undefined ? {} : { ...asJson, origin: gateway.url }), ...headers },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
    await response.arrayBuffer();
    return response.status;
  };
  const lease = { max: 1, lease_secs: 60 };
  const withSession = (value: string) => status('/api/keys', { cookie: `tollbook.session_token=${value}` });
  const openReceipt = (token: string) => status(issued.receiptPath, bearer(token));

  // each of them works with what it needs
  expect(await status('/v1/credits', bearer(issued.apiKey))).toBe(200);
  expect(await status('/audit/totals?from=2026-01-01&to=2026-01-02', bearer(issued.operatorToken))).toBe(200);
  expect(await status('/runner/leases', bearer(configuredSecrets.RUNNER_TOKEN), lease)).toBe(200);
  expect(await withSession(issued.session)).toBe(200);
  expect(await openReceipt(issued.receiptToken)).toBe(200);

  const body = Buffer.from('x');
  const id = `0x${'12'.repeat(32)}`;
  const nowSecs = 1_800_000_000;
  const sessionHashes = [...values].filter(
    (value): value is string => typeof value === 'string' && /^[\w-]{43}$/.test(value),
  );
  expect(sessionHashes).not.toEqual([]);
  const { RECEIPT_KEY, SECOND_RECEIPT_KEY, SESSION_SECRET, SECOND_SESSION_SECRET } = configuredSecrets;
  const sessionSecrets = [SESSION_SECRET, SECOND_SESSION_SECRET];
  const receiptMacs = [RECEIPT_KEY, SECOND_RECEIPT_KEY].map((key) => macOf(key, issued.digest));
  expect(receiptMacs[0]).toBe(issued.receiptToken);
  const opened: string[] = [];
  const tries = [...values].flatMap((value) => spellings(value).map((token) => ({ value, token })));
  expect(tries.length).toBeGreaterThan(20);
  const attempt = async ({ value, token }: (typeof tries)[number]): Promise<void> => {
    const note = (what: string, isOpen: boolean): void => void (isOpen && opened.push(`${what} by ${token}`));
    note('a key', (await status('/v1/credits', bearer(token))) !== 401);
    note('an audit', (await status('/audit/totals?from=2026-01-01&to=2026-01-02', bearer(token))) !== 401);
    note('a lease', (await status('/runner/leases', bearer(token), lease)) !== 401);
    note('a receipt', (await openReceipt(token)) !== 401);
    note('a session', (await withSession(token)) !== 401);
    // a MAC is right if it is the one that a key of the gateway gives: no request is needed to compare them
    note('a receipt by a key', receiptMacs.includes(macOf(value, issued.digest)));
    for (const hash of sessionHashes)
      note(
        'a signed session',
        sessionSecrets.some((secret) => signedValue([token], hash) === signedValue([secret], hash)),
      );
    note(
      'a reset',
      (await status('/api/auth/reset-password', {}, { token, newPassword: goodPassword })) === 200,
    );
    const headers = { ...signCall({ secret: token, id, timestampSecs: nowSecs, body, metadata: {} }) };
    for (const secret of [configuredSecrets.RUNNER_TOKEN, configuredSecrets.SECOND_RUNNER_TOKEN])
      note('a push', verifyCall({ secret, headers, body, nowSecs }).ok);
  };
  // a sign-in takes a quarter of a second: only what is stored beside the account is tried as its password
  for (const { token } of tries.filter(({ token: text }) => /^[0-9a-f]+:[0-9a-f]+$/.test(text)))
    if ((await status('/api/auth/sign-in/email', {}, { email, password: token.slice(0, 128) })) === 200)
      opened.push(`a password by ${token}`);
  for (let at = 0; at < tries.length; at += 8) await Promise.all(tries.slice(at, at + 8).map(attempt));
  expect(opened).toEqual([]);
});

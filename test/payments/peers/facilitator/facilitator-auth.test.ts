import { generateKeyPairSync, type KeyObject, randomUUID, sign, verify } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createFacilitator } from '../../../../src/payments/peers/facilitator/facilitator.ts';
import type { AuthorizeCall } from '../../../../src/payments/peers/facilitator/facilitator-auth.ts';
import { facilitatorKey } from '../../../support/facilitator-key.ts';
import { holdDeadlines, passTime } from '../../../support/deadlines.ts';
import { listening } from '../../../support/listening.ts';

const request = { x402Version: 2, paymentPayload: {}, paymentRequirements: {} } as const;
const answers: Readonly<Record<string, object>> = {
  '/x402/verify': { isValid: true },
  '/x402/settle': { success: true, transaction: `0x${'c'.repeat(64)}`, network: 'eip155:84532' },
  '/x402/supported': { kinds: [] },
};

/** A facilitator that admits whom `admits` knows, and keeps what it was asked. */
async function serve(admits: (request: IncomingMessage) => boolean) {
  const asked: string[] = [];
  const server = createServer((message, response) => {
    asked.push(`${message.method} ${message.url}`);
    const answer = admits(message) ? answers[message.url ?? ''] : undefined;
    response.writeHead(answer ? 200 : 401).end(JSON.stringify(answer ?? { error: 'no' }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => server.close().closeAllConnections());
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { asked, host, url: `http://${host}/x402` };
}

function connect(url: string, authorize: AuthorizeCall, bearer?: string, timeoutMs = 20_000) {
  const facilitator = createFacilitator({
    url,
    authorize,
    verifyTimeoutMs: timeoutMs,
    settleTimeoutMs: timeoutMs,
    ...(bearer === undefined ? {} : { bearer }),
  });
  onTestFinished(() => facilitator.close());
  return facilitator;
}

const es256 = { dsaEncoding: 'ieee-p1363' } as const;
const text = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A signer as an operator writes one: ES256, good for this one request. */
function jwtSigner(key: KeyObject): AuthorizeCall {
  return async ({ method, host, path }) => {
    const exp = Math.floor(Date.now() / 1_000) + 60;
    const claims = text({ exp, jti: randomUUID(), uri: `${method} ${host}${path}` });
    const signed = `${text({ alg: 'ES256', typ: 'JWT' })}.${claims}`;
    const signature = sign('sha256', Buffer.from(signed), { key, ...es256 }).toString('base64url');
    return { Authorization: `Bearer ${signed}.${signature}` };
  };
}

/** Admits each token once, for the very request it was signed for. */
function jwtChecker(key: KeyObject): (request: IncomingMessage) => boolean {
  const used = new Set<string>();
  return ({ headers, method, url }) => {
    const [head = '', body = '', signature = ''] =
      headers.authorization?.replace('Bearer ', '').split('.') ?? [];
    const signed = Buffer.from(`${head}.${body}`);
    if (!verify('sha256', signed, { key, ...es256 }, Buffer.from(signature, 'base64url'))) return false;
    const claims = read(body);
    const isNew = !used.has(String(claims['jti']));
    used.add(String(claims['jti']));
    return (
      isNew &&
      claims['uri'] === `${method} ${headers.host}${url}` &&
      Number(claims['exp']) * 1_000 > Date.now()
    );
  };
}

test('each request carries its own JWT, which the facilitator can verify', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { url, asked } = await serve(jwtChecker(publicKey));
  // the signer's header replaces the fixed one, whatever its letter case
  const facilitator = connect(url, jwtSigner(privateKey), 'a fixed token');
  for (let i = 0; i < 2; i++) {
    expect(await facilitator.supported()).toMatchObject({ kind: 'kinds' });
    expect(await facilitator.verify(request)).toMatchObject({ kind: 'valid' });
    expect(await facilitator.settle(request)).toMatchObject({ kind: 'settled' });
  }
  const round = ['GET /x402/supported', 'POST /x402/verify', 'POST /x402/settle'];
  expect(asked).toEqual([...round, ...round]);

  const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  expect(await connect(url, jwtSigner(stranger)).verify(request)).toMatchObject({ cause: 'status_401' });
});

const read = (part: string) =>
  JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;

test('a key of the configuration signs each request for that request alone, with a new nonce', async () => {
  const { secret, publicKey } = facilitatorKey('organizations/1/apiKeys/2');
  const nonces = new Set<unknown>();
  const { url, host } = await serve(({ headers, method, url: path }) => {
    const [head = '', body = '', signature = ''] =
      headers.authorization?.replace('Bearer ', '').split('.') ?? [];
    const { nonce, ...header } = read(head);
    nonces.add(nonce);
    expect(header).toEqual({ alg: 'EdDSA', typ: 'JWT', kid: 'organizations/1/apiKeys/2' });
    const { exp, nbf, iat, ...claims } = read(body);
    expect([Number(exp) - Number(nbf), nbf]).toEqual([120, iat]);
    expect(Math.abs(Number(nbf) * 1_000 - Date.now())).toBeLessThan(60_000);
    expect(claims).toEqual({
      iss: 'cdp',
      sub: 'organizations/1/apiKeys/2',
      aud: ['cdp_service'],
      uris: [`${method} ${host}${path}`],
    });
    return verify(null, Buffer.from(`${head}.${body}`), publicKey, Buffer.from(signature, 'base64url'));
  });
  const facilitator = createFacilitator({
    url,
    verifyTimeoutMs: 20_000,
    settleTimeoutMs: 20_000,
    bearers: () => [secret],
  });
  onTestFinished(() => facilitator.close());
  expect(await facilitator.supported()).toMatchObject({ kind: 'kinds' });
  expect(await facilitator.verify(request)).toMatchObject({ kind: 'valid' });
  expect(await facilitator.settle(request)).toMatchObject({ kind: 'settled' });
  expect(nonces.size).toBe(3);
});

test('the signer receives the method, host, path and operation of the request', async () => {
  const { url, host } = await serve(() => true);
  const calls: object[] = [];
  const facilitator = connect(url, async (call) => {
    calls.push(call);
    return {};
  });
  await facilitator.supported();
  await facilitator.verify(request);
  await facilitator.settle(request);
  expect(calls).toEqual([
    { method: 'GET', host, path: '/x402/supported', operation: 'supported' },
    { method: 'POST', host, path: '/x402/verify', operation: 'verify' },
    { method: 'POST', host, path: '/x402/settle', operation: 'settle' },
  ]);
});

const failing: [string, AuthorizeCall][] = [
  ['rejects', () => Promise.reject(new Error('the key is locked'))],
  [
    'throws',
    () => {
      throw new Error('the key is locked');
    },
  ],
  ['never ends', () => new Promise(() => {})],
  ['gives nothing', () => Promise.resolve(undefined as never)],
  ['gives what is not a header', () => Promise.resolve({ authorization: 7 } as never)],
];

test.each(failing)('nothing is sent where the signer %s', async (_, authorize) => {
  const { url, asked } = await serve(() => true);
  const facilitator = connect(url, authorize, undefined, 300);
  const cause = 'authorization_failed';
  expect(await facilitator.verify(request)).toMatchObject({ kind: 'unavailable', cause });
  expect(await facilitator.supported()).toMatchObject({ kind: 'unavailable', cause });
  expect(await facilitator.settle(request)).toMatchObject({ kind: 'not_sent', cause });
  expect(asked).toEqual([]);
});

test('nothing is sent where the signer returns an invalid header', async () => {
  const { url, asked } = await serve(() => true);
  const facilitator = connect(url, async () => ({ authorization: 'Bearer a\nb' }));
  expect(await facilitator.settle(request)).toMatchObject({ kind: 'not_sent', cause: 'invalid_request' });
  expect(asked).toEqual([]);
});

test('signing and sending share one time-out', async () => {
  const asked = Promise.withResolvers<void>();
  const server = createServer(() => asked.resolve());
  const at = await listening(server);
  const timeoutMs = 100_000;
  const signer: AuthorizeCall = () => {
    passTime(0.6 * timeoutMs);
    return Promise.resolve({});
  };
  const facilitator = connect(at, signer, undefined, timeoutMs);
  const deadlines = holdDeadlines();
  const settling = facilitator.settle(request);
  await asked.promise;
  const [limitMs, ...others] = await deadlines.end();
  expect(others).toEqual([]);
  // a time-out to itself would be all of it
  expect(limitMs).toBeLessThanOrEqual(0.4 * timeoutMs);
  expect(await settling).toMatchObject({ kind: 'unknown', cause: 'timeout' });
});

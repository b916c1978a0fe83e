import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { askProvider } from '../../../src/accounts/peers/provider-answers.ts';
import { githubProvider } from '../../../src/accounts/use-cases/auth-providers.ts';
import { boundPort } from '../../../src/devnet/ports.ts';

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close().closeAllConnections();
  });
  return `http://127.0.0.1:${boundPort(server)}`;
}

const padded = (chars: number): string => JSON.stringify({ text: 'x'.repeat(chars - '{"text":""}'.length) });

test.each([
  ['is longer than 256 KiB', padded(262_145)],
  ['has more than 128 levels', '['.repeat(129) + ']'.repeat(129)],
  ['has more than 60,000 values', `[${'0,'.repeat(60_000)}0]`],
  ['is not a JSON', '<html>'],
])("a provider's answer that %s is not read", async (_, body) => {
  const url = await serve((_request, response) => response.end(body));
  expect(await askProvider(url)).toBeUndefined();
});

test("a provider's answer of 256 KiB is read", async () => {
  const url = await serve((_request, response) => response.end(padded(262_144)));
  expect(await askProvider(url)).toMatchObject({ text: expect.any(String) });
});

test('a provider that sends its answer slowly is waited for up to the deadline over all of it', async () => {
  const url = await serve((_request, response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(timer));
  });
  expect(await askProvider(url, { timeoutMs: 200 })).toBeUndefined();
});

test('no redirect of a provider is followed, and no secret is sent to where it leads', async () => {
  let visits = 0;
  const elsewhere = await serve((_request, response) => {
    visits += 1;
    response.end('{}');
  });
  const url = await serve((_request, response) => response.writeHead(307, { location: elsewhere }).end('{}'));
  expect(await askProvider(url, { form: new URLSearchParams({ client_secret: 'x' }) })).toBeUndefined();
  expect(visits).toBe(0);
});

const profile = { id: 7, login: 'ada', name: null, email: null };
const emails = [
  { email: 'other@example.org', primary: false, verified: true },
  { email: 'ada@example.org', primary: true, verified: true },
];

async function throughGithub(answers: Readonly<Record<string, unknown>> = {}) {
  const asked: (string | undefined)[] = [];
  const all: Readonly<Record<string, unknown>> = {
    '/token': { access_token: 'a-token', token_type: 'bearer', scope: 'read:user,user:email' },
    '/user': profile,
    '/user/emails': emails,
    ...answers,
  };
  const url = await serve((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization ?? ''}`);
    response.end(JSON.stringify(all[request.url ?? '']));
  });
  const places = { authorize: `${url}/authorize`, token: `${url}/token`, user: `${url}/user` };
  const provider = githubProvider({ clientId: 'tollbook', clientSecret: 'a-secret' }, places);
  const code = { code: 'a-code', codeVerifier: 'v', redirectURI: 'http://here.example/' };
  const tokens = await provider.validateAuthorizationCode(code);
  return { asked, user: tokens && (await provider.getUserInfo(tokens)) };
}

test('GitHub signs a user in by its id, with the address that it has verified', async () => {
  const { asked, user } = await throughGithub();
  expect(user).toEqual({
    user: { name: 'ada', email: 'ada@example.org', emailVerified: true },
    data: profile,
  });
  expect(asked).toEqual(['POST /token ', 'GET /user Bearer a-token', 'GET /user/emails Bearer a-token']);
});

test.each([
  ['its primary address is not verified', { '/user/emails': [{ ...emails[1], verified: false }] }],
  ['its addresses are longer than any that are read', { '/user/emails': [{ more: 'x'.repeat(262_144) }] }],
  ['its public address is none of its own', { '/user': { ...profile, email: 'eve@example.org' } }],
])('GitHub proves no address of a user where %s', async (_, answers) => {
  expect((await throughGithub(answers)).user?.user.emailVerified).toBe(false);
});

test.each([
  ['tokens', { '/token': { access_token: 'a-token', more: 'x'.repeat(262_144) } }],
  ['an error', { '/token': { error: 'bad_verification_code' } }],
  ['a profile', { '/user': { ...profile, more: 'x'.repeat(262_144) } }],
  ['a profile without an id', { '/user': { ...profile, id: undefined } }],
])('GitHub signs no user in with %s that cannot be read', async (_, answers) => {
  expect((await throughGithub(answers)).user).toBeNull();
});

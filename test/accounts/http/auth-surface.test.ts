import { betterAuth } from 'better-auth';
import { expect, test } from 'vitest';
import { startIdentityGateway } from '../../support/identity.ts';

/** What people need, and nothing that the library offers besides. */
const served = [
  'GET /callback/:id',
  'GET /error',
  'GET /get-session',
  'GET /list-accounts',
  'GET /ok',
  'GET /reset-password/:token',
  'GET /verify-email',
  'POST /callback/:id',
  'POST /change-password',
  'POST /get-session',
  'POST /link-social',
  'POST /request-password-reset',
  'POST /reset-password',
  'POST /revoke-sessions',
  'POST /send-verification-email',
  'POST /sign-in/email',
  'POST /sign-in/social',
  'POST /sign-out',
  'POST /sign-up/email',
  'POST /unlink-account',
  'POST /update-user',
];

interface Endpoint {
  readonly path?: string;
  readonly options?: { readonly method?: string | readonly string[] };
}

/** Every path that this version of the library can serve, by its own list. */
function offered(): string[] {
  const { api } = betterAuth({
    baseURL: 'http://127.0.0.1',
    secret: 'nothing is ever signed with this one',
    emailAndPassword: { enabled: true },
  });
  return Object.values(api as unknown as Record<string, Endpoint>).flatMap(({ path, options }) =>
    path === undefined ? [] : [options?.method ?? []].flat().map((method) => `${method} ${path}`),
  );
}

test('only the needed paths of the sign-in library are served', async () => {
  const gateway = await startIdentityGateway();
  const browser = gateway.browser();
  const answering: string[] = [];
  for (const one of offered().toSorted()) {
    const [method = '', path = ''] = one.split(' ');
    const where = `/api/auth${path.replaceAll(/:\w+/g, 'x')}`;
    const answer = await browser.request(method, where, method === 'GET' ? undefined : {});
    if (answer.status !== 404) answering.push(one);
  }
  expect(answering).toEqual(served);
});

test('an answer whose redirect would not fit into the headers that clients accept is refused', async () => {
  const gateway = await startIdentityGateway();
  const callback = await gateway.browser().post('/api/auth/callback/x', { state: 'x'.repeat(20_000) });
  expect(callback).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
});

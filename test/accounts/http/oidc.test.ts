import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { boundPort, freePort } from '../../../src/devnet/ports.ts';
import {
  type Answer,
  type Browser,
  type IdentityGateway,
  type IdentityOptions,
  goodPassword,
  ownClients,
  signIn,
  signUp,
  startIdentityGateway,
  userId,
} from '../../support/identity.ts';
import { allEvents } from '../../support/invariants.ts';
import { oidcSecret, type OidcServer, type People, startOidc } from '../../support/oidc.ts';
import { eventually } from '../../support/wait.ts';
import { useShared } from '../../support/shared.ts';
import { soonMs } from '../../support/time-limits.ts';

const email = 'ada@example.org';
const people: People = {
  ada: { email, email_verified: true },
  eve: { email: 'eve@example.org', email_verified: true },
  unproven: { email, email_verified: false },
  quoted: { email, email_verified: 'false' },
  silent: { email, email_verified: undefined },
};

interface Together {
  readonly gateway: IdentityGateway;
  readonly oidc: OidcServer;
}

type Tamper = Parameters<typeof startOidc>[0]['tamper'];

async function startBoth(
  options: IdentityOptions = {},
  { listens = true, tamper }: { readonly listens?: boolean; readonly tamper?: Tamper } = {},
): Promise<Together> {
  const gatewayPort = await freePort();
  const oidc = await startOidc({ gatewayPort, people, listens, tamper });
  const gateway = await startIdentityGateway({
    ...options,
    bind: `127.0.0.1:${gatewayPort}`,
    env: { OIDC_SECRET: oidcSecret },
    tables: `${oidc.table}${options.tables ?? ''}`,
  });
  if (listens) await untilReached(gateway);
  return { gateway, oidc };
}

const shared = useShared(() => startBoth());
let tests = 0;

/** One gateway and provider for the tests that make no user of it, each with clients of its own. */
function share(): Together {
  const { gateway, oidc } = shared();
  return { oidc, gateway: { ...gateway, browser: ownClients(gateway, ++tests) } };
}

/** The gateway has read the provider's metadata: on a busy machine the first answer may take longer than a gateway waits. */
const untilReached = (gateway: Together['gateway']): Promise<void> =>
  eventually(async () => expect((await begin(gateway.browser())).status).not.toBe(404));

const begin = (browser: Browser, more: object = {}): Promise<Answer> =>
  browser.post('/api/auth/sign-in/social', { provider: 'home', callbackURL: '/welcome', ...more });

async function throughProvider({ oidc }: Together, browser: Browser, login: string): Promise<Answer> {
  const { json } = await begin(browser);
  return browser.get(await oidc.signIn(json.url, login));
}

/** Where a way back led, and whether to a session. */
async function outcomeOf(browser: Browser, answer: Answer) {
  const location = new URL(answer.headers.get('location') ?? '', 'http://nowhere');
  const error = location.searchParams.get('error');
  return { status: answer.status, path: location.pathname, error, user: await userId(browser) };
}

/** To a page of the gateway's own, without a session. */
const refused = (error: unknown = expect.any(String)) => ({
  status: 302,
  path: '/api/auth/error',
  error,
  user: undefined,
});

describe('an OpenID provider', () => {
  test('signs a user in, who is the same user the next time', async () => {
    const both = await startBoth();
    const [first, second] = [both.gateway.browser(), both.gateway.browser()];
    const answer = await throughProvider(both, first, 'ada');
    expect(answer.headers.get('location')).toBe('/welcome');
    await throughProvider(both, second, 'ada');
    const id = await userId(first);
    expect(id).toEqual(expect.any(String));
    expect(await userId(second)).toBe(id);
    const events = await allEvents(both.gateway.database.db);
    expect(events.map(({ type }) => type)).toEqual(['session_started', 'session_started']);
    expect(events.map(({ data }) => data)).toMatchObject([
      { method: 'provider', provider: 'home', is_sign_up: true },
      { method: 'provider', provider: 'home' },
    ]);
    expect(events[1]?.data).not.toHaveProperty('is_sign_up');
  });

  test('receives a challenge and a nonce, and nothing that a client adds', async () => {
    const { gateway } = share();
    const url = new URL((await begin(gateway.browser())).json.url);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      code_challenge: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      nonce: expect.stringMatching(/^.{32}$/),
      redirect_uri: `${gateway.url}/api/auth/callback/home`,
    });
    for (const more of [
      { additionalParams: { code_challenge: 'x' } },
      { scopes: ['admin'] },
      { idToken: { token: 'x' } },
    ])
      expect((await begin(gateway.browser(), more)).status).toBe(400);
  });

  test('ends the session that its browser had before', async () => {
    const both = await startBoth();
    const [browser, old] = [both.gateway.browser(), both.gateway.browser()];
    await throughProvider(both, browser, 'ada');
    for (const [name, value] of browser.cookies) old.cookies.set(name, value);
    const before = await userId(old);
    await throughProvider(both, browser, 'ada');
    expect([before, await userId(old)]).toEqual([await userId(browser), undefined]);
  });

  test('is linked only soon after a sign-in', async () => {
    const both = await startBoth();
    const browser = both.gateway.browser();
    await signUp(both.gateway, browser, email);
    await signIn(browser, email);
    const link = (): Promise<Answer> =>
      browser.post('/api/auth/link-social', { provider: 'home', callbackURL: '/' });
    expect((await link()).status).toBe(200);
    await both.gateway.database.pool.query(
      "update identity.session set created_at = created_at - interval '11 minutes'",
    );
    const late = await link();
    expect([late.status, late.json.code]).toEqual([403, 'SESSION_NOT_FRESH']);
  });

  test('leaves no access token', async () => {
    const both = await startBoth();
    await throughProvider(both, both.gateway.browser(), 'ada');
    const { rows } = await both.gateway.database.pool.query(
      'select access_token, refresh_token, id_token, password from identity.credential',
    );
    expect(rows).toEqual([{ access_token: null, refresh_token: null, id_token: null, password: null }]);
  });

  test.each(['https://evil.example/', '//evil.example', '/\\evil.example'])(
    'redirects no client to %s',
    async (url) => {
      const { gateway } = share();
      for (const key of ['callbackURL', 'errorCallbackURL', 'newUserCallbackURL'])
        expect((await begin(gateway.browser(), { [key]: url })).status).toBe(403);
    },
  );
});

const longAt =
  (at: string): NonNullable<Tamper> =>
  (path, body) => {
    if (path === at) body['more'] = 'x'.repeat(262_144);
  };

describe("a provider's callback is refused", () => {
  test.each([
    ['without a state', (url: URL) => url.searchParams.delete('state')],
    ['with another state', (url: URL) => url.searchParams.set('state', 'x'.repeat(32))],
    ['without a code', (url: URL) => url.searchParams.delete('code')],
    ['with another code', (url: URL) => url.searchParams.set('code', 'x'.repeat(43))],
    ['of another issuer', (url: URL) => url.searchParams.set('iss', 'https://evil.example')],
    ['for another provider', (url: URL) => (url.pathname = '/api/auth/callback/github')],
  ])('%s', async (_, tamper) => {
    const both = share();
    const browser = both.gateway.browser();
    const url = new URL(await both.oidc.signIn((await begin(browser)).json.url, 'ada'));
    tamper(url);
    expect(await outcomeOf(browser, await browser.get(url.href))).toEqual(refused());
  });

  test('in a browser that did not start the sign-in', async () => {
    const both = share();
    const [thief, victim] = [both.gateway.browser('198.51.100.1'), both.gateway.browser()];
    const back = await both.oidc.signIn((await begin(thief)).json.url, 'eve');
    expect(await outcomeOf(victim, await victim.get(back))).toEqual(refused('state_mismatch'));
    await begin(victim);
    expect(await outcomeOf(victim, await victim.get(back))).toEqual(refused('state_mismatch'));
  });

  test('a second time', async () => {
    const both = await startBoth();
    const browser = both.gateway.browser();
    const back = await both.oidc.signIn((await begin(browser)).json.url, 'ada');
    const kept = new Map(browser.cookies);
    await browser.get(back);
    const replayer = both.gateway.browser();
    for (const [name, value] of kept) replayer.cookies.set(name, value);
    expect(await outcomeOf(replayer, await replayer.get(back))).toEqual(refused());
  });

  test.each<[string, NonNullable<Tamper>]>([
    ['has no ID token', (path, body) => path === '/token' && delete body['id_token']],
    [
      'has an ID token that the provider did not sign',
      (path, body) => {
        if (path === '/token') body['id_token'] = String(body['id_token']).replace(/[^.]+$/, 'A'.repeat(342));
      },
    ],
    [
      'is followed by an email address of another user',
      (path, body) => {
        if (path === '/me') body['sub'] = 'eve';
      },
    ],
    // what else is not read of a provider is in test/accounts/peers/provider-answers.test.ts
    ['is longer than any that is read', longAt('/token')],
    ['is followed by keys longer than any that are read', longAt('/jwks')],
    ['is followed by a profile longer than any that is read', longAt('/me')],
  ])('when the answer to its code %s', async (_, tamper) => {
    const both = await startBoth({}, { tamper });
    const browser = both.gateway.browser();
    expect(await outcomeOf(browser, await throughProvider(both, browser, 'ada'))).toEqual(refused());
  });

  test('with a code issued for another challenge', async () => {
    const both = share();
    const [thief, victim] = [both.gateway.browser('198.51.100.1'), both.gateway.browser()];
    const stolen = new URL(await both.oidc.signIn((await begin(victim)).json.url, 'ada'));
    const own = new URL(await both.oidc.signIn((await begin(thief)).json.url, 'eve'));
    own.searchParams.set('code', stolen.searchParams.get('code') ?? '');
    expect(await outcomeOf(thief, await thief.get(own.href))).toEqual(refused('invalid_code'));
  });

  test('and recorded in the ledger as a refused sign-in', async () => {
    const both = await startBoth();
    const browser = both.gateway.browser();
    await browser.get('/api/auth/callback/home?code=x&state=y');
    const events = await allEvents(both.gateway.database.db);
    expect(events.map(({ type, data }) => [type, data])).toEqual([
      ['sign_in_refused', { method: 'provider', provider: 'home', reason: 'state_mismatch' }],
    ]);
  });
});

describe('an email address', () => {
  test.each(['unproven', 'quoted', 'silent'])(
    'that the provider has not verified creates no user: %s',
    async (login) => {
      const both = await startBoth();
      const browser = both.gateway.browser();
      expect(await outcomeOf(browser, await throughProvider(both, browser, login))).toEqual(refused());
      const events = await allEvents(both.gateway.database.db);
      expect(events.map(({ type }) => type)).toEqual(['sign_in_refused']);
    },
  );

  test('that both sides have verified links the two accounts', async () => {
    const both = await startBoth();
    const [byPassword, byProvider] = [both.gateway.browser(), both.gateway.browser()];
    await signUp(both.gateway, byPassword, email);
    await signIn(byPassword, email);
    await throughProvider(both, byProvider, 'ada');
    expect(await userId(byProvider)).toBe(await userId(byPassword));
  });

  test.each(['unproven', 'quoted', 'silent'])(
    'that only the gateway has verified links no accounts: %s',
    async (login) => {
      const both = await startBoth();
      await signUp(both.gateway, both.gateway.browser(), email);
      const thief = both.gateway.browser('198.51.100.1');
      expect(await outcomeOf(thief, await throughProvider(both, thief, login))).toEqual(refused());
    },
  );

  test('that only the provider has verified links no accounts: a stranger may have signed up with it', async () => {
    const both = await startBoth();
    const stranger = both.gateway.browser('198.51.100.1');
    await stranger.post('/api/auth/sign-up/email', { email, password: goodPassword, name: 'x' });
    const browser = both.gateway.browser();
    expect(await outcomeOf(browser, await throughProvider(both, browser, 'ada'))).toEqual(refused());
  });
});

describe('an unreachable provider', () => {
  test('does not delay other sign-ins, and is tried again when it is needed', async () => {
    const both = await startBoth({}, { listens: false });
    const browser = both.gateway.browser();
    await signUp(both.gateway, browser, email);
    expect((await signIn(browser, email)).status).toBe(200);
    expect((await begin(browser)).status).toBe(404);
    await both.oidc.start();
    let clients = 0;
    await eventually(async () => {
      const patient = both.gateway.browser(`198.51.100.${clients++ % 250}`);
      expect((await begin(patient)).status).toBe(200);
    });
    await throughProvider(both, both.gateway.browser(), 'eve');
  });

  test('refuses its callback with a reason', async () => {
    const both = await startBoth();
    const browser = both.gateway.browser();
    const back = await both.oidc.signIn((await begin(browser)).json.url, 'ada');
    await both.oidc.stop();
    expect(await outcomeOf(browser, await browser.get(back))).toEqual(refused());
  });

  test('that never answers delays a request only up to the time limit', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    onTestFinished(() => {
      silent.close().closeAllConnections();
    });
    const table = `
[[identity.providers]]
name = "silent"
issuer = "http://127.0.0.1:${boundPort(silent)}"
client_id = "tollbook"
client_secret = "env:OIDC_SECRET"
`;
    const gateway = await startIdentityGateway({ env: { OIDC_SECRET: oidcSecret }, tables: table });
    const startedMs = performance.now();
    expect((await signIn(gateway.browser(), email)).status).toBe(401);
    expect(performance.now() - startedMs).toBeLessThan(soonMs(3_000));
  });

  test('is asked for its metadata once: what was checked is what is used', async () => {
    let reads = 0;
    const both = await startBoth(
      {},
      {
        tamper(path, body) {
          if (path.startsWith('/.well-known/') && ++reads > 1) body['issuer'] = 'https://evil.example';
        },
      },
    );
    const browser = both.gateway.browser();
    await throughProvider(both, browser, 'ada');
    expect(await userId(browser)).toEqual(expect.any(String));
    expect(reads).toBe(1);
  });

  test('that reports another issuer is refused', async () => {
    const impostor = createServer((_, response) => {
      const at = 'https://evil.example';
      response.end(
        JSON.stringify({ issuer: at, authorization_endpoint: at, token_endpoint: at, jwks_uri: at }),
      );
    }).listen(0, '127.0.0.1');
    await once(impostor, 'listening');
    onTestFinished(() => {
      impostor.close().closeAllConnections();
    });
    const table = `
[[identity.providers]]
name = "home"
issuer = "http://127.0.0.1:${boundPort(impostor)}"
client_id = "tollbook"
client_secret = "env:OIDC_SECRET"
`;
    const gateway = await startIdentityGateway({ env: { OIDC_SECRET: oidcSecret }, tables: table });
    expect((await begin(gateway.browser())).status).toBe(404);
  });
});

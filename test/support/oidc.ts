import { once } from 'node:events';
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';
import { vi } from 'vitest';
import { freePort } from '../../src/devnet/ports.ts';
import { keep } from './identity.ts';
import { whenOver } from './shared.ts';

/** The provider's claims about its users, by login. */
export type People = Readonly<
  Record<string, { readonly email: string; readonly email_verified: unknown; readonly name?: string }>
>;

export interface OidcServer {
  readonly issuer: string;
  /** Keys of `[[identity.providers]]`. */
  readonly table: string;
  /** Goes the way of a browser from where the gateway sent it: signs in, consents; returns where that leads back to. */
  signIn(authorizationUrl: string, login: string): Promise<string>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export const oidcSecret = 'the-secret-of-the-oidc-client';

/** A real OpenID provider that requires PKCE. Listens unless an option says otherwise; stopped when the test ends. */
export async function startOidc({
  gatewayPort,
  people,
  listens = true,
  name = 'home',
  tamper,
}: {
  readonly gatewayPort: number;
  readonly people: People;
  readonly listens?: boolean;
  readonly name?: string;
  /** Changes the JSON that the provider answers at a path. */
  readonly tamper?: ((path: string, body: Record<string, unknown>) => void) | undefined;
}): Promise<OidcServer> {
  const port = await freePort();
  // suppresses its advice for production use
  for (const level of ['warn', 'info'] as const) vi.spyOn(console, level).mockImplementation(() => {});
  const issuer = `http://127.0.0.1:${port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'tollbook',
        client_secret: oidcSecret,
        redirect_uris: [`http://127.0.0.1:${gatewayPort}/api/auth/callback/${name}`],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    pkce: { required: () => true },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    findAccount: (_: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, name: id, ...people[id] }),
    }),
    cookies: { keys: ['of a test'] },
    features: { devInteractions: { enabled: true } },
  });
  provider.use(async (exchange, next) => {
    await next();
    if (isRecord(exchange.body)) tamper?.(exchange.path, exchange.body);
  });
  let server: ReturnType<typeof createServer> | undefined;
  const stop = async (): Promise<void> => {
    const open = server;
    server = undefined;
    if (!open) return;
    open.close().closeAllConnections();
    await once(open, 'close');
  };
  const start = async (): Promise<void> => {
    server = createServer(provider.callback()).listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  if (listens) await start();
  whenOver(stop);
  return {
    issuer,
    table: `
[[identity.providers]]
name = "${name}"
issuer = "${issuer}"
client_id = "tollbook"
client_secret = "env:OIDC_SECRET"
`,
    signIn: (url, login) => walk(url, login, gatewayPort),
    start,
    stop,
  };
}

async function walk(from: string, login: string, gatewayPort: number): Promise<string> {
  const cookies = new Map<string, string>();
  const ask = async (url: string, form?: Record<string, string>): Promise<Response> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    });
    keep(cookies, response.headers.getSetCookie());
    return response;
  };
  let url = from;
  for (let steps = 0; steps < 20; steps++) {
    if (new URL(url).port === String(gatewayPort)) return url;
    const isInteraction = new URL(url).pathname.startsWith('/interaction/');
    const page = await ask(url);
    const text = await page.text();
    const prompt = /name="prompt" value="(\w+)"/.exec(text)?.[1];
    const answer = isInteraction && prompt ? await ask(url, { prompt, login, password: 'x' }) : page;
    const location = answer.headers.get('location');
    if (location === null) throw new Error(`${answer.status} at ${url}: ${text.slice(0, 500)}`);
    url = new URL(location, url).href;
  }
  throw new Error('the provider leads nowhere');
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && value.constructor === Object;
}

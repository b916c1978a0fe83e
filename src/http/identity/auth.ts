import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { AuthLoader } from '../../identity/auth-loader.ts';
import type { Identity } from '../../identity/context.ts';
import { cookieOf, cookiePrefix, isHttps, sessionCookieName } from '../../identity/sessions.ts';
import { type Attempt, deviceMark, recordRefusal, takeAttempt } from '../../identity/sign-in-limits.ts';
import { sendRefusal } from '../server/errors.ts';
import type { RequestBodies } from '../server/request-bodies.ts';
import { noteFacts } from '../server/request-log.ts';
import { late, within } from '../../runtime/within.ts';

const base = '/api/auth';
/** How long a request waits for an identity provider. */
const timeoutMs = 20_000;
/** Answers whose timing could reveal whether an account exists are delayed to a multiple of this. */
const stepMs = 250;
const deviceSecs = 34_560_000;

const emailPaths: Readonly<Record<string, 'password' | 'sign_up' | 'mail'>> = {
  '/sign-in/email': 'password',
  '/sign-up/email': 'sign_up',
  '/request-password-reset': 'mail',
  '/send-verification-email': 'mail',
};
const tokenPaths = ['/reset-password', '/change-password'];
const providerPaths = ['/sign-in/social', '/link-social'];

/** better-auth below `/api/auth`, with rate limits and answers that do not reveal which accounts exist. */
export function authRoutes(identity: Identity, door: AuthLoader, bodies: RequestBodies) {
  return async (app: FastifyInstance): Promise<void> => {
    app.removeAllContentTypeParsers();
    // better-auth parses it itself
    app.addContentTypeParser(
      'application/json',
      async (request: FastifyRequest, payload: IncomingMessage) => {
        const limits = { maxBytes: request.routeOptions.bodyLimit, workFactor: 4 };
        return (await bodies.read(request, payload, limits)).toString('utf8');
      },
    );
    app.route({
      method: ['GET', 'POST'],
      url: '/auth/*',
      handler: (request, reply) => answer(identity, door, request, reply),
    });
  };
}

/** For pages that the links in emails open, and the page that reports an error. */
const guards = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
} as const;

interface AuthRequest {
  /** Below the base. */
  readonly path: string;
  readonly email: string;
  readonly provider: string | undefined;
}

async function answer(
  identity: Identity,
  door: AuthLoader,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const authRequest = readAuthRequest(request);
  reply.headers(guards);
  // the path of a link is a secret, even when a mail program has added to it
  if (request.url.startsWith(`${base}/reset-password/`))
    noteFacts(request, { path: `${base}/reset-password/…` });
  if (!authRequest) return sendRefusal(request, reply, 'not_found');
  const attempt = attemptOf(identity, request, authRequest);
  const retryAfterSecs = attempt ? await takeAttempt(identity, request.ip, attempt) : 0;
  if (retryAfterSecs > 0) return sendRefusal(request, reply, 'too_many_attempts', { retryAfterSecs });
  const needsProviders = authRequest.provider !== undefined || providerPaths.includes(authRequest.path);
  const auth = await door.load(needsProviders);
  const couldRevealAccount = emailPaths[authRequest.path] !== undefined;
  const startedMs = performance.now();
  const response = await within(timeoutMs, auth.handler(toRequest(identity, request)));
  if (couldRevealAccount) await sleep(stepMs - ((performance.now() - startedMs) % stepMs));
  if (response === late || response.status >= 500)
    return sendRefusal(request, reply, 'sign_in_unavailable', { retryAfterSecs: 2 });
  return sendResponse(identity, authRequest, response, reply);
}

/** Undefined for a path that is not in its one canonical spelling: limits depend on the path. */
function readAuthRequest(request: FastifyRequest): AuthRequest | undefined {
  const [whole = ''] = request.url.split('?', 1);
  const path = whole.slice(base.length);
  if (!/^(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]{0,127})+$/.test(path)) return undefined;
  return {
    path,
    email: emailIn(request.body),
    provider: /^\/callback\/(.+)$/.exec(path)?.[1],
  };
}

function emailIn(body: unknown): string {
  try {
    const { email } = JSON.parse(String(body)) as { email?: unknown };
    return typeof email === 'string' ? email : '';
  } catch {
    return '';
  }
}

/** The attempt to be counted; undefined for requests that are not limited, such as reading a session. */
function attemptOf(
  { publicUrl }: Identity,
  request: FastifyRequest,
  authRequest: AuthRequest,
): Attempt | undefined {
  if (request.method === 'GET') return authRequest.provider === undefined ? undefined : { kind: 'other' };
  const { email, path } = authRequest;
  const kind = emailPaths[path];
  if (kind === 'password') {
    const device = cookieOf(request.headers.cookie, `${cookiePrefix(publicUrl())}.device`);
    return { kind, email, device };
  }
  if (kind !== undefined) return { kind, email };
  if (!tokenPaths.includes(path)) return { kind: 'other' };
  // a cookie has several spellings, its token has one
  const cookie = cookieOf(request.headers.cookie, sessionCookieName(publicUrl())) ?? '';
  return { kind: 'token', session: /^[A-Za-z0-9_-]{1,128}/.exec(cookie)?.[0] };
}

function toRequest({ publicUrl }: Identity, { method, url, headers, body }: FastifyRequest): Request {
  const passed = new Headers();
  // the origin was checked before; a client without one is not a browser
  passed.set('origin', headers.origin ?? new URL(publicUrl()).origin);
  if (headers.cookie !== undefined) passed.set('cookie', headers.cookie);
  const text = method === 'POST' ? (typeof body === 'string' && body !== '' ? body : '{}') : undefined;
  if (text !== undefined) passed.set('content-type', 'application/json');
  return new Request(new URL(url, publicUrl()), {
    method,
    headers: passed,
    ...(text !== undefined && { body: text }),
  });
}

async function sendResponse(
  identity: Identity,
  authRequest: AuthRequest,
  response: Response,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const text = await response.text();
  const cookies = response.headers.getSetCookie();
  if (authRequest.path === '/sign-in/email') {
    if (response.ok) cookies.push(deviceCookie(identity, authRequest.email));
    else if (response.status !== 400) await recordRefusal(identity, 'password', codeIn(text));
  }
  const location = response.headers.get('location');
  const refusedBy = location === null ? null : errorIn(location, identity.publicUrl());
  if (authRequest.provider !== undefined && refusedBy !== null) {
    const isOurs = identity.settings.providers.some(({ name }) => name === authRequest.provider);
    await recordRefusal(identity, 'provider', refusedBy, isOurs ? authRequest.provider : undefined);
  }
  if (location !== null)
    reply.header('location', guardedLocation(authRequest, location, identity.publicUrl()));
  if (cookies.length > 0) reply.header('set-cookie', cookies);
  const type = response.headers.get('content-type');
  if (type !== null) reply.type(type);
  return reply.code(response.status).send(text);
}

function codeIn(text: string): string {
  const code = /"code":"([A-Z_]{1,100})"/.exec(text)?.[1];
  return code?.toLowerCase() ?? 'other';
}

/** Only a provider's sign-in redirects to another origin: `/..//other.example` would, once its dots are resolved. */
function guardedLocation({ path }: AuthRequest, location: string, publicUrl: string): string {
  if (providerPaths.includes(path)) return location;
  const { origin } = new URL(publicUrl);
  return URL.canParse(location, origin) && new URL(location, origin).origin === origin ? location : '/';
}

function errorIn(location: string, publicUrl: string): string | null {
  return new URL(location, publicUrl).searchParams.get('error');
}

function deviceCookie({ settings, publicUrl }: Identity, email: string): string {
  const prefix = cookiePrefix(publicUrl());
  const secure = isHttps(publicUrl()) ? '; Secure' : '';
  const mark = deviceMark(settings.secret, email);
  return `${prefix}.device=${mark}; Max-Age=${deviceSecs}; Path=/; HttpOnly; SameSite=Lax${secure}`;
}

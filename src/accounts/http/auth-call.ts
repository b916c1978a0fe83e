import { setTimeout as sleep } from 'node:timers/promises';
import { clientOf } from '../../base/values/client-address.ts';
import type { RefusalCode } from '../../base/errors/refusal.ts';
import type { AuthLoader } from '../use-cases/auth-loader.ts';
import type { Identity } from '../use-cases/context.ts';
import { reportNewPassword } from '../use-cases/auth-mails.ts';
import { endFormerSession, isHttps, resolveSession, sessionCookieName } from '../use-cases/sessions.ts';
import { type Attempt, deviceMark, recordRefusal, takeAttempt } from '../use-cases/sign-in-limits.ts';
import { late, within } from '../../base/runtime/within.ts';
import { addressOf } from '../../base/http/request-values.ts';
import {
  type AuthRequest,
  type Incoming,
  deviceCookieName,
  emailPaths,
  readAuthRequest,
  toRequest,
} from './auth-request.ts';

/** How long a request waits for an identity provider. */
const timeoutMs = 20_000;
/** Answers whose timing could reveal whether an account exists are delayed to a multiple of this. */
const stepMs = 250;
/** The library repeats a client's values in its redirects; clients and proxies refuse headers of 16 KiB in all. */
const maxLocationChars = 8_000;
const deviceSecs = 34_560_000;

const tokenPaths = ['/reset-password', '/change-password'];
const providerPaths = ['/sign-in/social', '/link-social'];

export type AuthOutcome =
  | { readonly kind: 'refused'; readonly code: RefusalCode; readonly retryAfterSecs?: number }
  /** What better-auth answered, with the cookies of the gateway. */
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly text: string;
      readonly type: string | null;
      /** Of this origin, unless a provider signs in. */
      readonly location: string | null;
      readonly cookies: readonly string[];
    };

/** Calls better-auth, with rate limits and answers that do not reveal which accounts exist. */
export async function callAuth(
  identity: Identity,
  door: AuthLoader,
  incoming: Incoming,
): Promise<AuthOutcome> {
  const result = readAuthRequest(identity, incoming);
  if (result.kind === 'refused') return result;
  const { authRequest } = result;
  const attempt = await attemptOf(identity, incoming, authRequest);
  const retryAfterSecs = attempt ? await takeAttempt(identity, addressOf(incoming), attempt) : 0;
  if (retryAfterSecs > 0) return { kind: 'refused', code: 'too_many_attempts', retryAfterSecs };
  const needsProviders = authRequest.provider !== undefined || providerPaths.includes(authRequest.path);
  const auth = await door.load(needsProviders);
  const couldRevealAccount = emailPaths[authRequest.path] !== undefined;
  const startedMs = performance.now();
  const sender = {
    client: clientOf(addressOf(incoming), identity.ipv6Prefix),
    isKnownDevice: authRequest.device !== undefined || isOfSession(attempt),
  };
  const answered = auth.handler(toRequest(identity, authRequest, incoming), sender);
  const response = await within(timeoutMs, answered);
  if (couldRevealAccount) await sleep(stepMs - ((performance.now() - startedMs) % stepMs));
  if (response === late || response.status >= 500)
    return { kind: 'refused', code: 'sign_in_unavailable', retryAfterSecs: 2 };
  if (response.ok && attempt?.kind === 'token' && attempt.user && authRequest.path === '/change-password')
    reportNewPassword(identity, attempt.user.userId);
  if (signsIn(identity, authRequest, response)) await endFormerSession(identity, incoming.headers.cookie);
  return outcomeOf(identity, authRequest, response);
}

function isOfSession(attempt: Attempt | undefined): boolean {
  return attempt?.kind === 'token' && attempt.user !== undefined;
}

/** Whether the answer carries the cookie of a new session; other paths repeat the one that the request had. */
function signsIn({ publicUrl }: Identity, { path, provider }: AuthRequest, { headers }: Response): boolean {
  if (path !== '/sign-in/email' && provider === undefined) return false;
  const prefix = `${sessionCookieName(publicUrl())}=`;
  return headers.getSetCookie().some((cookie) => cookie.startsWith(prefix));
}

/** The attempt to be counted; undefined for requests that are not limited, such as reading a session. */
async function attemptOf(
  identity: Identity,
  { headers }: Incoming,
  { path, body, email, device, provider }: AuthRequest,
): Promise<Attempt | undefined> {
  if (body === undefined) return provider === undefined ? undefined : { kind: 'other' };
  const kind = emailPaths[path];
  if (kind === 'password' && email !== undefined) return { kind, email, device };
  if (kind !== undefined && kind !== 'password' && email !== undefined) return { kind, email };
  if (!tokenPaths.includes(path)) return { kind: 'other' };
  const session = await resolveSession(identity, headers.cookie);
  return { kind: 'token', user: session.kind === 'session' ? session.user : undefined };
}

async function outcomeOf(
  identity: Identity,
  authRequest: AuthRequest,
  response: Response,
): Promise<AuthOutcome> {
  const text = await response.text();
  const type = response.headers.get('content-type');
  // for a path that it does not serve the library has no JSON
  if (response.status === 404 && !type?.startsWith('application/json'))
    return { kind: 'refused', code: 'not_found' };
  const cookies = response.headers.getSetCookie();
  if (authRequest.path === '/sign-in/email') {
    if (response.ok) cookies.push(deviceCookie(identity, authRequest));
    else if (response.status !== 400) await recordRefusal(identity, 'password', codeIn(text));
  }
  const location = response.headers.get('location');
  if (location !== null && location.length > maxLocationChars)
    return { kind: 'refused', code: 'invalid_request' };
  const refusedBy = location === null ? null : errorIn(location, identity.publicUrl());
  if (authRequest.provider !== undefined && refusedBy !== null) {
    const isOurs = identity.settings.providers.some(({ name }) => name === authRequest.provider);
    await recordRefusal(identity, 'provider', refusedBy, isOurs ? authRequest.provider : undefined);
  }
  return {
    kind: 'answered',
    status: response.status,
    text,
    type,
    location: location && guardedLocation(authRequest, location, identity.publicUrl()),
    cookies,
  };
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

/** A device that is known keeps its name: a new name at each sign-in would allow new attempts each time. */
function deviceCookie(identity: Identity, { email = '', device }: AuthRequest): string {
  const secure = isHttps(identity.publicUrl()) ? '; Secure' : '';
  const mark = deviceMark(identity.settings.secrets[0], email, device);
  return `${deviceCookieName(identity)}=${mark}; Max-Age=${deviceSecs}; Path=/; HttpOnly; SameSite=Lax${secure}`;
}

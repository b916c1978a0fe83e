import type { IncomingHttpHeaders } from 'node:http';
import type { Identity } from '../use-cases/context.ts';
import { cookieOf, cookiePrefix, cookiesIn, sessionCookieName } from '../use-cases/sessions.ts';
import { knownDevice } from '../use-cases/sign-in-limits.ts';
import {
  signedValue,
  tokenWithSecretInUse,
  valueWithSecretInUse,
  verifiedText,
} from '../use-cases/signed-values.ts';
import { isObject } from '../../base/values/json-object.ts';

export const authBase = '/api/auth';

/** What of a request is read. The pages make such requests of the forms that they get. */
export interface Incoming {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body?: unknown;
  readonly ip: string | undefined;
}

/** Paths whose body names an email address, and the attempt that a request to them makes. */
export const emailPaths: Readonly<Record<string, 'password' | 'sign_up' | 'mail'>> = {
  '/sign-in/email': 'password',
  '/sign-up/email': 'sign_up',
  '/request-password-reset': 'mail',
  '/send-verification-email': 'mail',
};

/** What the library gets whatever the client sends: a new password ends the sessions that the old one may have given away. */
const always: Readonly<Record<string, object>> = { '/change-password': { revokeOtherSessions: true } };

/**
 * A request below `/api/auth`, read once: the limits and the library get the same values, whatever the client's spelling. Two
 * parsers would read some bodies and cookies differently, and such a request would pass the limits of another one.
 */
export interface AuthRequest {
  /** Below the base. */
  readonly path: string;
  /** Undefined for a request without a body. */
  readonly body: Readonly<Record<string, unknown>> | undefined;
  /** In lower case; undefined if the path takes none. */
  readonly email: string | undefined;
  /** The id of a device that has signed in to the account of this address before. */
  readonly device: string | undefined;
  readonly provider: string | undefined;
}

export type AuthRequestResult =
  | { readonly kind: 'read'; readonly authRequest: AuthRequest }
  /** `not_found`: a path that is not in its one canonical spelling, since limits depend on the path. */
  | { readonly kind: 'refused'; readonly code: 'not_found' | 'invalid_request' };

export function readAuthRequest(identity: Identity, request: Incoming): AuthRequestResult {
  const [target = ''] = request.url.split('?', 1);
  const path = /^\/api\/auth((?:\/[A-Za-z0-9_-][A-Za-z0-9._-]{0,127})+)$/.exec(target)?.[1];
  if (path === undefined) return { kind: 'refused', code: 'not_found' };
  const body = request.method === 'POST' ? (request.body ?? {}) : undefined;
  if (body !== undefined && !isObject(body)) return { kind: 'refused', code: 'invalid_request' };
  const takesEmail = body !== undefined && emailPaths[path] !== undefined;
  const email = takesEmail && typeof body['email'] === 'string' ? body['email'].toLowerCase() : undefined;
  if (takesEmail && !email) return { kind: 'refused', code: 'invalid_request' };
  const mark = cookieOf(request.headers.cookie, deviceCookieName(identity));
  return {
    kind: 'read',
    authRequest: {
      path,
      body: body && { ...body, ...(email !== undefined && { email }), ...always[path] },
      email,
      device: email === undefined ? undefined : knownDevice(identity.settings.secrets, email, mark),
      provider: /^\/callback\/(.+)$/.exec(path)?.[1],
    },
  };
}

/** The request as the library gets it. */
export function toRequest(
  identity: Identity,
  { body }: AuthRequest,
  { method, url, headers }: Incoming,
): Request {
  const { origin } = new URL(identity.publicUrl());
  const passed = new Headers();
  // the origin was checked before; a client without one is not a browser
  passed.set('origin', headers.origin ?? origin);
  const cookies = passedCookies(identity, headers.cookie);
  if (cookies !== '') passed.set('cookie', cookies);
  if (body !== undefined) passed.set('content-type', 'application/json');
  return new Request(targetOf(identity, origin + url), {
    method,
    headers: passed,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** The library checks the token of a link in a mail only with the secret in use. */
function targetOf(identity: Identity, url: string): string {
  const [whole, path = '', token = ''] = /^([^?]*\?(?:[^&]*&)*?token=)([\w.-]+)/.exec(url) ?? [];
  if (whole === undefined || !url.includes(`${authBase}/verify-email?`)) return url;
  return path + tokenWithSecretInUse(identity, token) + url.slice(whole.length);
}

/** The library's cookies; that of a session in the gateway's own spelling, and only with a valid signature. */
function passedCookies(identity: Identity, header: string | undefined): string {
  const { settings, publicUrl } = identity;
  const sessionName = sessionCookieName(publicUrl());
  const token = verifiedText(identity, cookieOf(header, sessionName) ?? '');
  const others = [...cookiesIn(header)].filter(
    ([name]) => name.startsWith(`${cookiePrefix(publicUrl())}.`) && name !== sessionName,
  );
  return [
    ...(token === undefined ? [] : [`${sessionName}=${signedValue(settings.secrets, token)}`]),
    ...others.map(([name, value]) => `${name}=${valueWithSecretInUse(identity, value)}`),
  ].join('; ');
}

export function deviceCookieName({ publicUrl }: Identity): string {
  return `${cookiePrefix(publicUrl())}.device`;
}

import { refusals } from '../../../base/errors/refusal.ts';
import { type AuthOutcome, callAuth } from '../../../accounts/http/auth-call.ts';
import { authBase } from '../../../accounts/http/auth-request.ts';
import { type Refusal, refusedView } from '../document.ts';
import type { Answer, PageHost, VisitOf, Visit } from '../visit.ts';
import { endedCookie } from '../cookies.ts';
import { problemView } from '../problem.ts';
import { ownPath, pathWith } from '../own-path.ts';

export type AuthResult =
  | { readonly kind: 'done'; readonly json: unknown; readonly cookies: readonly string[] }
  /** `code` is better-auth's, in upper case, or the gateway's. */
  | (Refusal & { readonly kind: 'refused'; readonly code: string });

/** Sends a form's values to better-auth, as the API does for its clients. */
export async function askAuth(visit: VisitOf<PageHost>, path: string, body: object): Promise<AuthResult> {
  const { site, request } = visit;
  const url = authBase + path;
  const incoming = { method: 'POST', url, headers: request.headers, body, ip: request.ip };
  return resultOf(await callAuth(site.identity, site.auth, incoming));
}

function resultOf(outcome: AuthOutcome): AuthResult {
  if (outcome.kind === 'refused') {
    const { code, retryAfterSecs } = outcome;
    const wait = retryAfterSecs === undefined ? '' : ` That is ${waitText(retryAfterSecs)}.`;
    const text =
      code === 'too_many_attempts'
        ? `Too many attempts. Wait a little, then try again.${wait}`
        : refusals[code].sentence;
    const { status } = refusals[code];
    return { kind: 'refused', status, code, text, ...(retryAfterSecs !== undefined && { retryAfterSecs }) };
  }
  const json = parsed(outcome.text);
  if (outcome.status < 400) return { kind: 'done', json, cookies: outcome.cookies };
  const code = textOf(json, 'code');
  return { kind: 'refused', status: outcome.status, code, text: sentences[code] ?? defaultSentence };
}

const defaultSentence = 'This was not accepted. Check what you entered and try again.';

/** By the code of better-auth. None tells whether an account exists, except to who has proven to own it. */
const sentences: Readonly<Record<string, string>> = {
  INVALID_EMAIL_OR_PASSWORD: 'This address and this password do not belong together.',
  INVALID_EMAIL: 'This is not an e-mail address.',
  INVALID_PASSWORD: 'The current password is not right.',
  PASSWORD_TOO_SHORT: 'The password needs at least 10 characters.',
  PASSWORD_TOO_LONG: 'The password can have at most 128 characters.',
  INVALID_TOKEN: 'This link is no longer valid: it was used, or it is too old. Ask for another one.',
  SESSION_NOT_FRESH: 'For this, sign in again first: your sign-in must be younger than ten minutes.',
  FAILED_TO_UNLINK_LAST_ACCOUNT: 'This is your only password or provider. Add another one first.',
  USER_DISABLED: 'The operator has disabled this account.',
};

function waitText(secs: number): string {
  return secs < 90 ? `${secs} seconds` : `${Math.ceil(secs / 60)} minutes`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A text in better-auth's JSON; empty if it is absent. */
export function textOf(json: unknown, key: string): string {
  const value: unknown = typeof json === 'object' && json !== null ? Reflect.get(json, key) : undefined;
  return typeof value === 'string' ? value : '';
}

/** Where a sign-in leads: a page of this gateway, and nowhere else. */
export function nextOf({ site }: Visit, values: URLSearchParams): string {
  return ownPath(values.get('next'), site.publicUrl());
}

export function signInPath(next: string): string {
  return pathWith('/sign-in', { next: next === '/' ? '' : next });
}

/** Ends the session of a visit. The browser gives up its cookies, and one more that counts only with them. */
export async function signOut(visit: VisitOf<PageHost>, cookie: string, to: string): Promise<Answer> {
  const result = await askAuth(visit, '/sign-out', {});
  if (result.kind === 'refused' && visit.visitor)
    return refusedView(problemView(result.status, `${result.text} You are still signed in.`), result);
  const cookies = result.kind === 'done' ? result.cookies : [];
  const ended = endedCookie(visit.site.publicUrl(), cookie);
  return { kind: 'redirect', to, notice: 'signed_out', cookies: [...cookies, ended] };
}

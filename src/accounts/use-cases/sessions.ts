import { createHash } from 'node:crypto';
import type { SignInMethod } from '../../ledger/rules/identity-events.ts';
import type { LedgerEvent } from '../../ledger/rules/event.ts';
import {
  dropSessions,
  type EndedSession,
  endSessions,
  findEndedSessions,
  findSession,
  openUserAccount,
} from '../store/identity.ts';
import type { Identity } from './context.ts';
import { verifiedText } from './signed-values.ts';

/** A user who adds or removes a way to sign in must have signed in within this time. */
export const freshSecs = 600;

/** The user of a valid session. */
export interface SessionUser {
  readonly sessionId: string;
  readonly userId: string;
  readonly accountId: number;
}

/** The prefix of all cookie names; over https one that browsers accept only from this host over https. */
export function cookiePrefix(publicUrl: string): string {
  return isHttps(publicUrl) ? '__Host-tollbook' : 'tollbook';
}

export function isHttps(publicUrl: string): boolean {
  return publicUrl.startsWith('https:');
}

/** The database stores only this hash of a session's token, so that reading it gives no session. */
export function sessionTokenHash(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

/** The cookies in a `Cookie` header; the first of each name. */
export function cookiesIn(header: string | undefined): ReadonlyMap<string, string> {
  const cookies = new Map<string, string>();
  for (const part of header?.split(';') ?? []) {
    const at = part.indexOf('=');
    const name = part.slice(0, at).trim();
    if (at > 0 && !cookies.has(name)) cookies.set(name, part.slice(at + 1).trim());
  }
  return cookies;
}

/** The first cookie of this name in a `Cookie` header. */
export function cookieOf(header: string | undefined, name: string): string | undefined {
  return cookiesIn(header).get(name);
}

/** The name of the session cookie. */
export function sessionCookieName(publicUrl: string): string {
  return `${cookiePrefix(publicUrl)}.session_token`;
}

/** Whether a `Cookie` header carries a session cookie, valid or not. */
export function hasSessionCookie({ publicUrl }: Identity, cookies: string | undefined): boolean {
  return (cookieOf(cookies, sessionCookieName(publicUrl())) ?? '') !== '';
}

/** Names the session whose cookie this gateway signed, which may have ended since; nothing is read. */
export function sessionOf(identity: Identity, cookies: string | undefined): string | undefined {
  const token = verifiedText(identity, cookieOf(cookies, sessionCookieName(identity.publicUrl())) ?? '');
  return token === undefined ? undefined : sessionTokenHash(token);
}

/** `none`: there is no session cookie. `invalid`: its session is unknown or has ended. */
export type SessionResult =
  | { readonly kind: 'session'; readonly user: SessionUser }
  | { readonly kind: 'none' }
  | { readonly kind: 'invalid' };

/** The session that a `Cookie` header carries. */
export async function resolveSession(
  identity: Identity,
  cookies: string | undefined,
): Promise<SessionResult> {
  const value = cookieOf(cookies, sessionCookieName(identity.publicUrl()));
  if (value === undefined || value === '') return { kind: 'none' };
  const token = verifiedText(identity, value);
  if (token === undefined) return { kind: 'invalid' };
  const session = await findSession(identity.pool, sessionTokenHash(token));
  if (!session) return { kind: 'invalid' };
  const { sessionId, userId } = session;
  const accountId = session.accountId ?? (await openUserAccount(identity.pool, userId)).accountId;
  return { kind: 'session', user: { sessionId, userId, accountId } };
}

interface NewSession {
  readonly sessionId: string;
  readonly userId: string;
  readonly method: SignInMethod;
  readonly provider?: string | undefined;
  readonly expiresAt: Date;
}

/**
 * Opens the account of a session's user, and records the start of the session; must be done before its token is sent. Strangers can begin as
 * many as they like: beyond an allowance they are counted, and their ends have no event either. Users who have or had credit have an
 * separate allowance.
 */
export async function noteSession(
  identity: Pick<Identity, 'pool' | 'lane' | 'sessionEvents' | 'requestTally'>,
  session: NewSession,
): Promise<void> {
  const { isNew, isRecorded } = await openUserAccount(identity.pool, session.userId);
  const { strangers, customers } = identity.sessionEvents;
  if ((isRecorded ? customers : strangers).take()) await recordSession(identity, session, isNew);
  else identity.requestTally.addSession(session.method, isNew);
}

/** Records the start of a session by a separate event. */
export async function recordSession(
  { lane }: Pick<Identity, 'lane'>,
  session: NewSession,
  isSignUp = false,
): Promise<void> {
  const { sessionId, userId, method, provider, expiresAt } = session;
  const data = {
    session_id: sessionId,
    user_id: userId,
    method,
    ...(provider === undefined ? {} : { provider }),
    expires_at: Math.floor(expiresAt.getTime() / 1_000),
    ...(isSignUp && ({ is_sign_up: true } as const)),
  };
  await lane.append({
    stream: sessionStream(sessionId),
    expect: 0,
    events: [{ type: 'session_started', data }],
  });
}

/** Ends sessions in every process immediately, and records their ends. */
export async function endUserSessions(
  identity: Pick<Identity, 'pool' | 'lane'>,
  sessionIds: readonly string[],
): Promise<number> {
  const ended = await endSessions(identity.pool, sessionIds);
  await recordEnds(identity, ended);
  return ended.length;
}

/** Ends the session that a browser had when it signed in anew: its cookie is replaced, and would stay valid in other hands. */
export async function endFormerSession(identity: Identity, cookies: string | undefined): Promise<void> {
  const former = await resolveSession(identity, cookies);
  if (former.kind === 'session') await endUserSessions(identity, [former.user.sessionId]);
}

/** Records the end of up to `max` sessions that expired or whose end was not recorded, and deletes them; returns how many. */
export async function pruneSessions(identity: Pick<Identity, 'pool' | 'lane'>, max: number): Promise<number> {
  const ended = await findEndedSessions(identity.pool, max);
  await recordEnds(identity, ended);
  return ended.length;
}

async function recordEnds(
  { pool, lane }: Pick<Identity, 'pool' | 'lane'>,
  ended: readonly EndedSession[],
): Promise<void> {
  // another process may have recorded the end already, and a start that was counted has no event: the expected version does not match then
  await Promise.all(
    ended.map((session) =>
      lane.append({ stream: sessionStream(session.sessionId), expect: 1, events: [endOf(session)] }),
    ),
  );
  await dropSessions(
    pool,
    ended.map(({ sessionId }) => sessionId),
  );
}

function endOf({ sessionId, userId, reason }: EndedSession): LedgerEvent {
  return { type: 'session_ended', data: { session_id: sessionId, user_id: userId, reason } };
}

function sessionStream(sessionId: string): string {
  return `session:${sessionId}`;
}

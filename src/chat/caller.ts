import { apiKeyHash, isApiKey } from '../domain/identity/api-key.ts';
import { clientOf } from '../domain/values/client-address.ts';
import { openAiError } from '../domain/errors/openai-error.ts';
import { type ApiKey, findApiKey } from '../store/api-keys.ts';
import { mayAuthenticate, tryApiKey } from '../store/credit.ts';
import { type Refused, refuse } from './answer.ts';
import type { Cache } from '../domain/values/bounded-cache.ts';
import type { ChatContext } from './context.ts';
import { resolveSession } from '../identity/sessions.ts';
import type { VerifiedSpend } from '../spend/spend.ts';
import { verifySpend } from '../spend/verify-spend.ts';

/** What a request brings to say who asks. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly paymentSignature: string | undefined;
  readonly cookie: string | undefined;
  /** The request may be made in the name of its cookie: no page of another origin made it. */
  readonly isOfOwnPages: boolean;
  /** The client's address, trusted proxies passed over. */
  readonly address: string;
}

/** A key as it was shown, and by whom. */
interface ShownKey {
  /** Its SHA-256. */
  readonly hash: string;
  /** Names the client for its failed tries. */
  readonly client: string;
}

export type Caller =
  /** Whether the key still holds is decided where its request is admitted. */
  | ({ readonly kind: 'api_key'; readonly key: ApiKey } & ShownKey)
  | { readonly kind: 'session'; readonly userId: string; readonly accountId: number }
  /** Paid on a chain to the operator; its nonce is taken where its request is admitted. */
  | { readonly kind: 'spend_auth'; readonly spend: VerifiedSpend }
  /** `subject` names the client for its limits. */
  | { readonly kind: 'anonymous'; readonly subject: string };

/**
 * Who asks, in one order of precedence: an explicit credential, a session's cookie, then nobody. One that is there and no good is 401, never
 * a way to be anonymous; two of them are 400.
 */
export async function resolveCaller(
  context: ChatContext,
  credentials: Credentials,
): Promise<Caller | Refused> {
  const { authorization, paymentSignature, address } = credentials;
  const subject = clientOf(address, context.settings.ipv6Prefix);
  if (authorization !== undefined && paymentSignature !== undefined)
    return refuse(openAiError('conflicting_credentials'));
  if (paymentSignature !== undefined) {
    const spend = await verifySpend(context, paymentSignature, subject);
    return 'kind' in spend ? spend : { kind: 'spend_auth', spend };
  }
  if (authorization === undefined) return findUserOf(context, credentials, subject);
  const token = /^Bearer +([^ ]+) *$/i.exec(authorization)?.[1];
  // a typo is told without a query
  if (token === undefined || !isApiKey(token)) return refuse(openAiError('invalid_api_key'));
  return findKey(context, apiKeyHash(token), subject);
}

async function findKey(context: ChatContext, hash: string, client: string): Promise<Caller | Refused> {
  const known = context.keys.get(hash);
  if (known) return { kind: 'api_key', key: known, hash, client };
  const [refused, key] = await Promise.all([tryKey(context, { hash, client }), findApiKey(context.db, hash)]);
  if (refused) return refused;
  if (!key) throw new Error('a key that holds is not there');
  context.keys.set(hash, key);
  return { kind: 'api_key', key, hash, client };
}

/** A key that turned out not to hold any more is forgotten here, and counts as one that never did. */
export async function refuseKey(context: ChatContext, shown: ShownKey): Promise<Refused> {
  context.keys.delete(shown.hash);
  return (await tryKey(context, shown)) ?? refuse(openAiError('invalid_api_key'));
}

async function tryKey(
  { pool, settings }: ChatContext,
  { hash, client }: ShownKey,
): Promise<Refused | undefined> {
  const tried = await tryApiKey(pool, `auth:${client}`, settings.failedAuthPerMinute, hash);
  if (tried.outcome === 'known') return undefined;
  if (tried.outcome === 'unknown') return refuse(openAiError('invalid_api_key'));
  return refuse(openAiError('rate_limit_exceeded'), { retryAfterSecs: Math.ceil(tried.retryMs / 1_000) });
}

async function findUserOf(
  { identity, pool, settings }: ChatContext,
  { cookie, isOfOwnPages }: Credentials,
  subject: string,
): Promise<Caller | Refused> {
  const session = identity ? await resolveSession(identity, cookie) : 'none';
  if (session === 'none') return { kind: 'anonymous', subject };
  const failures = `auth:${subject}`;
  if (session === 'invalid') {
    const may = await mayAuthenticate(pool, failures, settings.failedAuthPerMinute, true);
    if (!may) return refuse(openAiError('rate_limit_exceeded'), { retryAfterSecs: 60 });
    const message = 'The session is unknown, or it has ended: sign in again.';
    return refuse(openAiError('invalid_api_key', { message }));
  }
  if (!isOfOwnPages)
    return refuse(
      openAiError('invalid_api_key', { message: 'A session serves only pages of this gateway itself.' }),
    );
  const { userId, accountId } = session;
  return { kind: 'session', userId, accountId };
}

/** What a caller spends, and by which key where by one. Undefined for nobody. */
export function spendingOf(
  caller: Caller,
): { readonly account_id: number; readonly key_id?: number } | undefined {
  if (caller.kind === 'api_key') return { account_id: caller.key.accountId, key_id: caller.key.keyId };
  return caller.kind === 'session' ? { account_id: caller.accountId } : undefined;
}

/** Keys this process has seen lately. What can change about a key is looked at where it is used, so it may be old. */
export type KeyCache = Cache<string, ApiKey>;

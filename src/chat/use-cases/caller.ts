import { apiKeyHash, isApiKey } from '../../accounts/rules/api-key.ts';
import type { Address } from '../../base/values/primitives.ts';
import { clientOf } from '../../base/values/client-address.ts';
import type { ModelConfig } from '../../base/config/config.ts';
import { openAiError } from '../../base/errors/openai-error.ts';
import { type ApiKey, findApiKey } from '../../accounts/store/api-keys.ts';
import { countAuthFailure, checkApiKey } from '../../accounts/store/credit.ts';
import { hasSessionCookie, resolveSession } from '../../accounts/use-cases/sessions.ts';
import type { VerifiedSpend } from './spend/spend.ts';
import { type SpendRequest, verifySpend } from './spend/verify-spend.ts';
import { type Refused, refuse } from './answer.ts';
import type { ChatContext } from './context.ts';
import { refuseSpend } from './refuse-spend.ts';

/** What a request carries to identify its caller. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly paymentSignature: string | undefined;
  /** The client's secret for the request that a spend authorization pays for. */
  readonly paymentSecret: string | undefined;
  readonly cookie: string | undefined;
  /** The request does not come from a page of another origin, so its cookie counts. */
  readonly isOfOwnPages: boolean;
  /** The client's IP address, in front of trusted proxies. */
  readonly address: string;
}

/** A key as a client presented it. */
interface PresentedKey {
  /** The key's SHA-256. */
  readonly hash: string;
  /** Names the client for the limit of failed credentials. */
  readonly client: string;
}

/** `client` names the client's address for its limits. */
export type Caller = { readonly client: string } & (
  | /** Whether the key is still valid is decided where its request is admitted. */
    ({ readonly kind: 'api_key'; readonly key: ApiKey } & PresentedKey)
  | ({ readonly kind: 'session'; readonly userId: string; readonly accountId: number } & OfForm)
  /** Pays the operator on a chain; the nonce is claimed where the request is admitted. */
  | { readonly kind: 'spend_auth'; readonly spend: VerifiedSpend }
  /** Pays for this completion alone, by x402: `onEnd` gets what it cost, and the route that sells it settles that. */
  | { readonly kind: 'x402'; readonly payer: Address; readonly order: PaidOrder }
  | ({ readonly kind: 'anonymous' } & OfForm)
);

/** A payment of at most an amount that is on record, and that nothing settles before its completion has ended. */
export interface PaidOrder {
  readonly coveredMicros: bigint;
  /** Called once. */
  readonly onEnd: (end: OrderEnd) => void;
}

export interface OrderEnd {
  /** 0 if nothing was delivered. */
  readonly costMicros: bigint;
  /** Whether the model has ended its answer. */
  readonly isWhole: boolean;
}

/** The form of a page that a request came by: in its UTC day it makes one completion, however often it is sent. */
interface OfForm {
  readonly formId?: string;
}

/**
 * Identifies the caller, in one order of precedence: an explicit credential, then a session's cookie, then anonymous. An
 * invalid credential is refused with 401 and never treated as anonymous; two credentials are refused with 400.
 */
export async function resolveCaller(
  context: ChatContext,
  credentials: Credentials,
): Promise<Caller | Refused> {
  const { authorization, paymentSignature, paymentSecret: secret, address } = credentials;
  const client = clientOf(address, context.settings.ipv6Prefix);
  if (authorization !== undefined && paymentSignature !== undefined)
    return refuse(openAiError('conflicting_credentials'));
  if (paymentSignature !== undefined)
    return findSpender(context, { header: paymentSignature, secret, client });
  if (authorization === undefined) return findUserOf(context, credentials, client);
  const token = /^Bearer +([^ ]+) *$/i.exec(authorization)?.[1];
  // the checksum in a key reveals a typo without a query
  if (token === undefined || !isApiKey(token)) return refuse(openAiError('invalid_api_key'));
  return findKey(context, apiKeyHash(token), client);
}

async function findSpender(
  context: ChatContext,
  sent: Pick<SpendRequest, 'header' | 'secret' | 'client'>,
): Promise<Caller | Refused> {
  const { spending, settings } = context;
  if (!spending) {
    const message = 'This gateway accepts no spend authorizations: send an API key. Nothing was charged.';
    return refuse(openAiError('invalid_api_key', { message }));
  }
  const { failedAuthPerMinute } = settings;
  const request = { ...sent, failedAuthPerMinute, firstByteSecs: firstByteSecs(context) };
  const result = await verifySpend(spending, request);
  return result.kind === 'verified'
    ? { kind: 'spend_auth', spend: result.spend, client: sent.client }
    : refuseSpend(result);
}

async function findKey(context: ChatContext, hash: string, client: string): Promise<Caller | Refused> {
  const known = context.keys.get(hash);
  if (known) {
    context.keyUses.note(known.keyId);
    return { kind: 'api_key', key: known, hash, client };
  }
  const [refused, key] = await Promise.all([tryKey(context, { hash, client }), findApiKey(context.db, hash)]);
  if (refused) return refused;
  if (!key) throw new Error('a valid API key has no row');
  context.keys.set(hash, key);
  context.keyUses.note(key.keyId);
  return { kind: 'api_key', key, hash, client };
}

/** Removes a key that is no longer valid from the cache; it counts as a failed credential. */
export async function refuseKey(context: ChatContext, key: PresentedKey): Promise<Refused> {
  context.keys.delete(key.hash);
  return (await tryKey(context, key)) ?? refuse(openAiError('invalid_api_key'));
}

async function tryKey(
  { pool, settings }: ChatContext,
  { hash, client }: PresentedKey,
): Promise<Refused | undefined> {
  const tried = await checkApiKey(pool, `auth:${client}`, settings.failedAuthPerMinute, hash);
  if (tried.outcome === 'known') return undefined;
  if (tried.outcome === 'unknown') return refuse(openAiError('invalid_api_key'));
  return refuse(openAiError('rate_limit_exceeded'), { retryAfterSecs: Math.ceil(tried.retryMs / 1_000) });
}

async function findUserOf(
  { identity, pool, settings }: ChatContext,
  { cookie, isOfOwnPages }: Credentials,
  client: string,
): Promise<Caller | Refused> {
  if (!identity || !hasSessionCookie(identity, cookie)) return { kind: 'anonymous', client };
  // not counted: pages of other origins could use up the attempts of their visitors
  if (!isOfOwnPages)
    return refuse(
      openAiError('invalid_api_key', {
        message: 'A session cookie is accepted only from pages of this gateway: send an API key instead.',
      }),
    );
  const session = await resolveSession(identity, cookie);
  if (session.kind !== 'session') {
    const may = await countAuthFailure(pool, `auth:${client}`, settings.failedAuthPerMinute, true);
    if (!may) return refuse(openAiError('rate_limit_exceeded'), { retryAfterSecs: 60 });
    const message = 'The session is unknown or has ended: sign in again.';
    return refuse(openAiError('invalid_api_key', { message }));
  }
  const { userId, accountId } = session.user;
  return { kind: 'session', userId, accountId, client };
}

/** The account that a caller spends from, and the key. Undefined for callers that spend no credit. */
export function spendingOf(
  caller: Caller,
): { readonly account_id: number; readonly key_id?: number } | undefined {
  if (caller.kind === 'api_key') return { account_id: caller.key.accountId, key_id: caller.key.keyId };
  return caller.kind === 'session' ? { account_id: caller.accountId } : undefined;
}

/** The key, the account, the client address and the prepaid account that a request runs for. */
export function subjectsOf(caller: Caller): string[] {
  const { account_id: account, key_id: key } = spendingOf(caller) ?? {};
  return [
    caller.client,
    ...(account === undefined ? [] : [`account:${account}`]),
    ...(key === undefined ? [] : [`key:${key}`]),
    ...(caller.kind === 'spend_auth' ? [`spend:${caller.spend.auth.commitment}`] : []),
    ...(caller.kind === 'x402' ? [`payer:${caller.payer}`] : []),
  ];
}

/**
 * How long at most a request waits for the first byte of an answer: until every upstream of a model was tried. The answer
 * itself may take longer, since a spend is paid out once its answer has begun.
 */
function firstByteSecs({ settings, models }: Pick<ChatContext, 'settings' | 'models'>): number {
  const upstreams = new Map(settings.upstreams.map((upstream) => [upstream.name, upstream]));
  const waitsMs = [...models.values()].map(({ targets }) =>
    targets.reduce((sum, { upstream }) => {
      const { connectTimeoutMs = 0, firstByteTimeoutMs = 0 } = upstreams.get(upstream) ?? {};
      return sum + connectTimeoutMs + firstByteTimeoutMs;
    }, 0),
  );
  return Math.ceil(Math.max(0, ...waitsMs) / 1_000);
}

/** Whether the caller's key, if it has one, allows the model. */
export function mayUse(caller: Caller, { name }: Pick<ModelConfig, 'name'>): boolean {
  return caller.kind !== 'api_key' || (caller.key.models?.includes(name) ?? true);
}

import type { FastifyRequest } from 'fastify';
import { openAiError } from '../domain/openai-error.ts';
import { refuse, type Refused } from '../routing/answer.ts';
import { type Caller, type Credentials, refuseKey, resolveCaller, spendingOf } from '../routing/caller.ts';
import type { Routing } from '../routing/routing.ts';
import { isOfOwnPages } from './own-pages.ts';
import { type ApiKey, findApiKeyById } from '../store/api-keys.ts';

/** Who asks, by all that the request carries; one that says it twice is refused before anybody chooses between the two. */
export async function callerOf(routing: Routing, request: FastifyRequest): Promise<Caller | Refused> {
  const credentials = readCredentials(routing, request);
  return 'kind' in credentials ? credentials : resolveCaller(routing, credentials);
}

/** The same where nothing is admitted, which would look at it: the key as it stands now, if it holds. */
export async function readerOf(routing: Routing, request: FastifyRequest): Promise<Caller | Refused> {
  const caller = await callerOf(routing, request);
  if (caller.kind !== 'api_key') return caller;
  const key = await findApiKeyById(routing.db, caller.key.keyId);
  const nowMs = Date.now() + routing.lane.state.clockOffsetMs;
  if (!key || key.revokedAt || (key.expiresAt && key.expiresAt.getTime() <= nowMs))
    return refuseKey(routing, caller);
  return { ...caller, key };
}

/** The key that a request must carry, or how it is refused. */
export async function keyOf(
  routing: Routing,
  request: FastifyRequest,
): Promise<{ readonly kind: 'api_key'; readonly key: ApiKey } | Refused> {
  const caller = await readerOf(routing, request);
  if (caller.kind === 'refused' || caller.kind === 'api_key') return caller;
  return refuse(openAiError('invalid_api_key', { message: 'This address wants an API key.' }));
}

/** The account that a request spends from, or how it is refused. */
export async function accountOf(
  routing: Routing,
  request: FastifyRequest,
): Promise<{ readonly kind: 'account'; readonly accountId: number } | Refused> {
  const caller = await readerOf(routing, request);
  if (caller.kind === 'refused') return caller;
  const spending = spendingOf(caller);
  if (spending) return { kind: 'account', accountId: spending.account_id };
  return refuse(openAiError('invalid_api_key', { message: 'This address wants an API key, or a session.' }));
}

function readCredentials({ identity }: Routing, request: FastifyRequest): Credentials | Refused {
  const { raw, headers, ip } = request;
  // Node keeps only the first Authorization, and joins other headers that came twice
  const { authorization = [], 'x-payment-signature': payment = [] } = raw.headersDistinct;
  if (authorization.length > 1) return twice('Authorization');
  if (payment.length > 1) return twice('X-Payment-Signature');
  return {
    authorization: authorization[0],
    paymentSignature: payment[0],
    cookie: headers.cookie,
    isOfOwnPages: identity !== undefined && isOfOwnPages(request, identity.publicUrl()),
    address: ip,
  };
}

function twice(name: string): Refused {
  return refuse(
    openAiError('invalid_request', { message: `The request carries the header ${name} more than once.` }),
  );
}

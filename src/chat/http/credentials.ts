import type { FastifyRequest } from 'fastify';
import { openAiError } from '../../base/errors/openai-error.ts';
import { refuse, type Refused } from '../use-cases/answer.ts';
import { type Caller, type Credentials, refuseKey, resolveCaller, spendingOf } from '../use-cases/caller.ts';
import type { ChatContext } from '../use-cases/context.ts';
import { isSpendSecret } from '../../accounts/rules/spend/spend-auth.ts';
import { isOfOwnPages } from '../../accounts/http/own-origin.ts';
import { addressOf } from '../../base/http/request-values.ts';
import { type ApiKey, findApiKeyById } from '../../accounts/store/api-keys.ts';

/** The caller of a request; a credential header that occurs twice is refused. */
export async function callerOf(context: ChatContext, request: FastifyRequest): Promise<Caller | Refused> {
  const credentials = readCredentials(context, request);
  return 'kind' in credentials ? credentials : resolveCaller(context, credentials);
}

/** The caller of a request without admission, which would check the key: reads the key's current state and checks it here. */
export async function readerOf(context: ChatContext, request: FastifyRequest): Promise<Caller | Refused> {
  const caller = await callerOf(context, request);
  if (caller.kind !== 'api_key') return caller;
  const key = await findApiKeyById(context.db, caller.key.keyId);
  const nowMs = Date.now() + context.lane.state.clockOffsetMs;
  if (!key || key.revokedAt || key.isDisabled || (key.expiresAt && key.expiresAt.getTime() <= nowMs))
    return refuseKey(context, caller);
  return { ...caller, key };
}

/** The API key that a request must carry. */
export async function keyOf(
  context: ChatContext,
  request: FastifyRequest,
): Promise<{ readonly kind: 'api_key'; readonly key: ApiKey } | Refused> {
  const caller = await readerOf(context, request);
  if (caller.kind === 'refused' || caller.kind === 'api_key') return caller;
  return refuse(
    openAiError('invalid_api_key', {
      message:
        'This endpoint requires an API key. Nothing was charged. Send one: `Authorization: Bearer sk-net-…`.',
    }),
  );
}

/** The account that a request spends from. */
export async function accountOf(
  context: ChatContext,
  request: FastifyRequest,
): Promise<{ readonly kind: 'account'; readonly accountId: number } | Refused> {
  const caller = await readerOf(context, request);
  if (caller.kind === 'refused') return caller;
  const spending = spendingOf(caller);
  if (spending) return { kind: 'account', accountId: spending.account_id };
  return refuse(
    openAiError('invalid_api_key', {
      message:
        'This endpoint requires an API key or a session. Nothing was charged. Send a key, `Authorization: Bearer sk-net-…`, or sign in.',
    }),
  );
}

function readCredentials({ identity }: ChatContext, request: FastifyRequest): Credentials | Refused {
  const { raw, headers } = request;
  // `headers` has only the first Authorization, and joins other headers that occur twice
  const {
    authorization = [],
    'x-payment-signature': payment = [],
    'x-payment-secret': secret = [],
  } = raw.headersDistinct;
  if (authorization.length > 1) return twice('Authorization');
  if (payment.length > 1) return twice('X-Payment-Signature');
  if (secret.length > 1) return twice('X-Payment-Secret');
  if (secret[0] !== undefined && !isSpendSecret(secret[0])) {
    const message =
      'X-Payment-Secret has 16 to 128 visible ASCII characters: use random ones. Nothing was charged.';
    return refuse(openAiError('invalid_request', { message }));
  }
  return {
    authorization: authorization[0],
    paymentSignature: payment[0],
    paymentSecret: secret[0],
    cookie: headers.cookie,
    isOfOwnPages:
      identity !== undefined && isOfOwnPages(request, identity.publicUrl(), identity.settings.trustedOrigins),
    address: addressOf(request),
  };
}

function twice(name: string): Refused {
  return refuse(
    openAiError('invalid_request', { message: `The request carries the header ${name} more than once.` }),
  );
}

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RefusalCode } from '../../base/errors/refusal.ts';
import { openAiError, type OpenAiError, type OpenAiErrorName } from '../../base/errors/openai-error.ts';
import type { PaymentOffer } from '../../base/errors/payment-offer.ts';
import { refusalOf } from './errors.ts';
import { RefusedRequestError } from '../../base/http/request-bodies.ts';
import { noteFacts } from '../../base/http/request-log.ts';

/** Sends a refusal of the chat API: OpenAI's envelope, and the headers that decide whether clients retry. */
export function sendOpenAiError(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, retry, body }: OpenAiError,
  more: { readonly retryAfterSecs?: number; readonly payment?: PaymentOffer; readonly offer?: string } = {},
): FastifyReply {
  noteFacts(request, { code: loggable(body.error.code) });
  const retryAfterSecs = more.retryAfterSecs ?? (status === 429 || status === 503 ? 2 : undefined);
  if (retryAfterSecs !== undefined) reply.header('retry-after', String(Math.max(1, retryAfterSecs)));
  if (!retry) reply.header('x-should-retry', 'false');
  if (more.payment) reply.headers(offerHeaders(more.payment));
  if (more.offer !== undefined) reply.header('payment-required', more.offer);
  return reply.code(status).header('cache-control', 'no-store').send(body);
}

/** How a request could be paid by a spend authorization. */
function offerHeaders({ amount, token, recipient, network }: PaymentOffer): Readonly<Record<string, string>> {
  return {
    'x-payment-required': String(amount),
    'x-payment-token': token,
    'x-payment-recipient': recipient,
    'x-payment-network': network,
  };
}

/** Answers errors thrown below `/v1`: a known error by its code; anything else is a fault, logged and answered as `server_error`. */
export function sendThrown(thrown: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = openAiErrorOf(thrown);
  if (error.status === 503) noteFacts(request, { reason: thrown.message.slice(0, 300) });
  else if (error.status >= 500 && !(thrown instanceof RefusedRequestError))
    request.log.error({ request_id: request.id, err: thrown }, 'request failed');
  return sendOpenAiError(request, reply, error);
}

const names: Partial<Record<RefusalCode, OpenAiErrorName>> = {
  invalid_request: 'invalid_request',
  body_too_large: 'body_too_large',
  overloaded: 'overloaded',
  request_timeout: 'request_timeout',
  ledger_unavailable: 'ledger_unavailable',
  ledger_inconsistent: 'ledger_inconsistent',
};

function openAiErrorOf(thrown: Error & { readonly statusCode?: number }): OpenAiError {
  if (thrown.statusCode === 415) return openAiError('unsupported_media_type');
  return openAiError(names[refusalOf(thrown)] ?? 'server_error');
}

/** Clients receive an upstream's own code, but the log only plain identifiers. */
function loggable(code: string): string {
  return /^[a-z0-9_]{1,64}$/.test(code) ? code : 'other';
}

import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { defaultRetryAfterSecs, type RefusalCode, refusals } from '../../domain/errors/refusal.ts';
import { ledgerRefusalOf } from '../../store/ledger-refusal.ts';
import { followRoutes } from './allowed-methods.ts';
import { noteFacts } from './request-log.ts';
import { RefusedBodyError } from './request-bodies.ts';

/** Sends a refusal: `{error, code, …context}`. */
export function sendRefusal(
  request: FastifyRequest,
  reply: FastifyReply,
  code: RefusalCode,
  more: {
    readonly retryAfterSecs?: number;
    /** For the log: why the code applies. */
    readonly reason?: string;
    readonly context?: Readonly<Record<string, unknown>>;
  } = {},
): FastifyReply {
  const { status, sentence } = refusals[code];
  noteFacts(request, more.reason === undefined ? { code } : { code, reason: more.reason });
  const retryAfterSecs = more.retryAfterSecs ?? defaultRetryAfterSecs(code);
  if (retryAfterSecs !== undefined) reply.header('retry-after', String(retryAfterSecs));
  return reply.code(status).send({ error: sentence, code, ...more.context });
}

/**
 * Answers thrown errors: a known one with its code, any other as `internal_error`; the log has the cause. To be called before the
 * routes are registered: a known path with another method is 405, with the methods that it has.
 */
export function handleErrors(app: FastifyInstance): void {
  app.setErrorHandler((error: FastifyError, request, reply) => sendError(error, request, reply));
  const allowedAt = followRoutes(app);
  app.setNotFoundHandler((request, reply) => {
    const allowed = allowedAt(request.url);
    if (allowed === undefined) return sendRefusal(request, reply, 'not_found');
    return sendRefusal(request, reply.header('allow', allowed), 'method_not_allowed');
  });
}

export function sendError(error: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const code = refusalOf(error);
  const { status } = refusals[code];
  if (status === 503) noteFacts(request, { reason: error.message.slice(0, 300) });
  // only a fault needs its stack
  else if (status >= 500) request.log.error({ request_id: request.id, err: error }, 'request failed');
  return sendRefusal(request, reply, code);
}

/** The code of a thrown error. */
export function refusalOf(
  error: Error & { readonly code?: string; readonly statusCode?: number },
): RefusalCode {
  if (error instanceof RefusedBodyError) return error.code;
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') return 'body_too_large';
  const ledgerCode = ledgerRefusalOf(error);
  if (ledgerCode) return ledgerCode;
  if (error.statusCode === 408) return 'request_timeout';
  return error.statusCode !== undefined && error.statusCode < 500 ? 'invalid_request' : 'internal_error';
}

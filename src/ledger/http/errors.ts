import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { flattenError, type ZodError } from 'zod';
import { defaultRetryAfterSecs, type RefusalCode, refusals } from '../../base/errors/refusal.ts';
import { ledgerRefusalOf } from '../store/ledger-refusal.ts';
import { followRoutes } from '../../base/http/allowed-methods.ts';
import { noteFacts } from '../../base/http/request-log.ts';
import { RefusedRequestError } from '../../base/http/request-bodies.ts';

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

/** Refuses input that has another form than its schema, and says where. */
export function sendInvalid(request: FastifyRequest, reply: FastifyReply, error: ZodError): FastifyReply {
  return sendRefusal(request, reply, 'invalid_request', { context: { details: flattenError(error) } });
}

/**
 * Answers with a page where a browser asks for one: undefined for every other request. `roots` gives the first segments of the paths that
 * are known, of both the pages and the API.
 */
export type SendProblemPage = (
  request: FastifyRequest,
  reply: FastifyReply,
  code: 'not_found' | 'method_not_allowed',
  roots: () => ReadonlySet<string>,
) => Promise<FastifyReply> | undefined;

/**
 * Answers thrown errors: a known one with its code, any other as `internal_error`; the log has the cause. To be called before the
 * routes are registered: a known path with another method is 405, with the methods that it has.
 */
export function handleErrors(app: FastifyInstance, problemPage?: SendProblemPage): void {
  app.setErrorHandler((error: FastifyError, request, reply) => sendError(error, request, reply));
  const routes = followRoutes(app);
  app.setNotFoundHandler((request, reply) => {
    const allowed = routes.allowedAt(request.url);
    if (allowed !== undefined) reply.header('allow', allowed);
    const code = allowed === undefined ? 'not_found' : 'method_not_allowed';
    return problemPage?.(request, reply, code, routes.roots) ?? sendRefusal(request, reply, code);
  });
}

export function sendError(error: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const code = refusalOf(error);
  const { status } = refusals[code];
  if (status === 503) noteFacts(request, { reason: error.message.slice(0, 300) });
  // only a fault needs its stack
  else if (status >= 500) request.log.error({ request_id: request.id, err: error }, 'request failed');
  const retryAfterSecs = retryAfterOf(error);
  return sendRefusal(request, reply, code, retryAfterSecs === undefined ? {} : { retryAfterSecs });
}

/** How long the client has to wait, if the thrown error says it. */
export function retryAfterOf(error: Error): number | undefined {
  return error instanceof RefusedRequestError ? error.retryAfterSecs : undefined;
}

/** The code of a thrown error. */
export function refusalOf(error: Error & { readonly statusCode?: number }): RefusalCode {
  if (error instanceof RefusedRequestError) return error.code;
  const ledgerCode = ledgerRefusalOf(error);
  if (ledgerCode) return ledgerCode;
  if (error.statusCode === 408) return 'request_timeout';
  return error.statusCode !== undefined && error.statusCode < 500 ? 'invalid_request' : 'internal_error';
}

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { openAiError } from '../../base/errors/openai-error.ts';
import type { ChatContext } from '../use-cases/context.ts';
import { completionRoutes, type OfferCompletion } from './completions.ts';
import type { Completions } from './make-completion.ts';
import { creditRoutes } from './credits.ts';
import { modelRoutes } from './models.ts';
import { sendOpenAiError, sendThrown } from '../../ledger/http/openai-errors.ts';
import type { RequestBodies } from '../../base/http/request-bodies.ts';
import { followRoutes } from '../../base/http/allowed-methods.ts';
import { readyRoutes } from '../../ledger/http/ready.ts';
import type { ReadinessJson } from '../../ledger/http/status.ts';

/**
 * The chat API: everything below `/v1`, where every answer has an `x-request-id` and every error OpenAI's format.
 * @param cutShort its abort ends all running completions
 */
export function chatRoutes(
  current: () => ChatContext,
  {
    bodies,
    readiness,
    completions,
    offer,
  }: {
    readonly bodies: RequestBodies;
    readonly readiness: () => ReadinessJson;
    readonly completions: Completions;
    /** Undefined where completions are sold to accounts alone. */
    readonly offer?: OfferCompletion | undefined;
  },
  cutShort: AbortSignal,
) {
  const below = async (app: FastifyInstance): Promise<void> => {
    app.removeAllContentTypeParsers();
    app.addHook('onRequest', async (request, reply) => {
      reply.header('x-request-id', request.id);
    });
    app.setErrorHandler((error: Error, request, reply) => sendThrown(error, request, reply));
    refuseUnknown(app);
    await app.register(completionRoutes(current, bodies, completions, cutShort, offer));
    await app.register(modelRoutes(current));
    await app.register(creditRoutes(current));
    await app.register(readyRoutes(readiness));
  };
  return async (app: FastifyInstance): Promise<void> => {
    await app.register(below, { prefix: '/v1' });
  };
}

/** An unknown path is 404; a known path with another method is 405, with the allowed methods. */
function refuseUnknown(app: FastifyInstance): void {
  const { allowedAt } = followRoutes(app);
  app.setNotFoundHandler((request: FastifyRequest, reply: FastifyReply) => {
    const allowed = allowedAt(request.url);
    if (allowed === undefined) return sendOpenAiError(request, reply, openAiError('not_found'));
    reply.header('allow', allowed);
    return sendOpenAiError(request, reply, openAiError('method_not_allowed'));
  });
}

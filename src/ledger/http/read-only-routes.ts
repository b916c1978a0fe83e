import type { FastifyInstance } from 'fastify';
import { openAiError } from '../../base/errors/openai-error.ts';
import { sendOpenAiError } from './openai-errors.ts';
import { sendRefusal } from './errors.ts';

/** Refuses what no other route of a quiet gateway answers, before a body is read. */
export function quietRoutes(isChatPath: (url: string) => boolean) {
  return async (app: FastifyInstance): Promise<void> => {
    app.all('/*', {
      onRequest: async (request, reply) => {
        reply.header('cache-control', 'no-store');
        if (isChatPath(request.url)) return sendOpenAiError(request, reply, openAiError('quiet'));
        return sendRefusal(request, reply, 'quiet');
      },
      handler: async () => undefined,
    });
  };
}

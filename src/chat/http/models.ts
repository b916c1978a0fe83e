import type { FastifyInstance } from 'fastify';
import type { ModelConfig } from '../../base/config/config.ts';
import { priceText } from '../../base/values/price.ts';
import { mayUse } from '../use-cases/caller.ts';
import type { ChatContext } from '../use-cases/context.ts';
import { unknownModel } from '../use-cases/unknown-model.ts';
import { readerOf } from './credentials.ts';
import { sendOpenAiError } from '../../ledger/http/openai-errors.ts';
import type { ModelJson } from './schemas/model.ts';

/** OpenAI's format has a creation time; upstreams report none, so it is the same constant on every gateway. */
const createdSecs = 1_767_225_600;

/** GET /v1/models and /v1/models/{id}: all models, or with an API key those that it may use. */
export function modelRoutes(current: () => ChatContext) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/models', async (request, reply) => {
      const context = current();
      const caller = await readerOf(context, request);
      if (caller.kind === 'refused') return sendOpenAiError(request, reply, caller.error, caller);
      const models = [...context.models.values()].filter((model) => mayUse(caller, model));
      return reply.send({ object: 'list', data: models.map((model) => modelJson(context, model)) });
    });

    // a name may hold slashes
    app.get<{ Params: { '*': string } }>('/models/*', async (request, reply) => {
      const context = current();
      const caller = await readerOf(context, request);
      if (caller.kind === 'refused') return sendOpenAiError(request, reply, caller.error, caller);
      const asked = request.params['*'];
      const model = context.models.get(asked);
      if (!model || !mayUse(caller, model))
        return sendOpenAiError(request, reply, unknownModel(context, caller, asked));
      return reply.send(modelJson(context, model));
    });
  };
}

function modelJson(
  { settings }: ChatContext,
  { name, price, contextLength, maxOutputTokens }: ModelConfig,
): ModelJson {
  return {
    id: name,
    object: 'model',
    created: createdSecs,
    owned_by: 'tollbook',
    free_tier: price === undefined,
    price: {
      input: priceText(price?.inputNanosPerMillion ?? 0n),
      output: priceText(price?.outputNanosPerMillion ?? 0n),
      cached_input: priceText(price?.cachedInputNanosPerMillion ?? price?.inputNanosPerMillion ?? 0n),
      cache_write: priceText(price?.cacheWriteNanosPerMillion ?? price?.inputNanosPerMillion ?? 0n),
      currency: settings.currency,
    },
    context_length: contextLength,
    max_output_tokens: maxOutputTokens,
  };
}

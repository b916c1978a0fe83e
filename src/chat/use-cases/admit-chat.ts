import type { ModelConfig } from '../../base/config/config.ts';
import type { ChatRequest } from '../rules/chat-request.ts';
import { unpricedParameter } from '../rules/unpriced-parameter.ts';
import { openAiError } from '../../base/errors/openai-error.ts';
import { offerOf } from './spend/payment-offer.ts';
import { invalidSpend } from './spend/refusal.ts';
import { type Admitted, type AdmittedChat, admit, withoutShort } from './admission.ts';
import { admitByCredit } from './admit-by-credit.ts';
import { admitBySpend } from './admit-by-spend.ts';
import { type Refused, refuse } from './answer.ts';
import { type Caller, subjectsOf } from './caller.ts';
import type { ChatContext } from './context.ts';
import { priceChat } from './priced-chat.ts';
import { refuseSpend } from './refuse-spend.ts';

/** Decides whether a completion may be made: its limits are counted and its maximum cost is held in one append. */
export async function admitChat(
  context: ChatContext,
  caller: Caller,
  request: ChatRequest,
  body: Uint8Array,
): Promise<AdmittedChat | Refused> {
  const { models, settings, concurrency } = context;
  const model = models.get(request.model);
  if (!model) return refuse(openAiError('model_not_found', { param: 'model' }));
  const refused = checkRequest(caller, request, model);
  if (refused) return refused;
  const leave = concurrency.enter(subjectsOf(caller), model.price === undefined, settings);
  if (!leave) return refuse(openAiError('too_many_running'), { retryAfterSecs: 1 });
  let result: Admitted | Refused | undefined;
  try {
    result = await admitForModel(context, caller, request, model, body);
  } finally {
    if (result?.kind !== 'admitted') leave();
  }
  return result.kind === 'admitted' ? { ...result, leave } : result;
}

async function admitForModel(
  context: ChatContext,
  caller: Caller,
  request: ChatRequest,
  model: ModelConfig,
  body: Uint8Array,
): Promise<Admitted | Refused> {
  const { spending } = context;
  const priced = priceChat(request, model);
  if (!priced) {
    const maxTokens = request.maxTokens ?? model.maxOutputTokens;
    return withoutShort(await admit(context, caller, { request, model, maxTokens }, { holdMicros: 0n }));
  }
  if (caller.kind === 'anonymous') return refuseUnpaid(context, priced.costOf(priced.requestedTokens));
  if (caller.kind !== 'spend_auth') return admitByCredit(context, caller, priced);
  if (!spending) return refuseSpend(invalidSpend('invalid_spend_auth'));
  return admitBySpend(context, spending, caller, priced, body);
}

/** Checks the request against its model and key; undefined when both allow it. */
function checkRequest(caller: Caller, request: ChatRequest, model: ModelConfig): Refused | undefined {
  if (caller.kind === 'api_key' && caller.key.models && !caller.key.models.includes(model.name)) {
    const message = 'This API key may not use this model: use another key or another model.';
    return refuse(openAiError('model_not_found', { param: 'model', message }));
  }
  const { maxOutputTokens } = model;
  if ((request.maxTokens ?? 0) > maxOutputTokens) return refuseLength(request, maxOutputTokens);
  const isCachePriced = model.price?.cacheWriteNanosPerMillion !== undefined;
  const unpriced = unpricedParameter(request, model.allowedParameters, isCachePriced);
  return unpriced && refuse(unpriced);
}

/** Refuses a request without credentials, with the ways to pay for it. */
function refuseUnpaid({ spending }: Pick<ChatContext, 'spending'>, costMicros: bigint): Refused {
  const message =
    'This model costs credit, and the request carries no credential: send an API key, or use a model of the free tier.';
  const payment = spending && offerOf(spending, costMicros);
  return refuse(openAiError('insufficient_funds', { message }), payment ? { payment } : {});
}

function refuseLength(request: ChatRequest, maxOutputTokens: number): Refused {
  const param = request.body['max_tokens'] == null ? 'max_completion_tokens' : 'max_tokens';
  const message = `${param} is above ${maxOutputTokens}, the longest answer of this model. Nothing was charged.`;
  return refuse(openAiError('invalid_value', { param, message }));
}

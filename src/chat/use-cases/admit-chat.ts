import type { ModelConfig } from '../../base/config/config.ts';
import type { ChatRequest } from '../rules/chat-request.ts';
import { unpricedParameter } from '../rules/unpriced-parameter.ts';
import { openAiError } from '../../base/errors/openai-error.ts';
import { invalidSpend } from './spend/refusal.ts';
import { type Admitted, type AdmittedChat, admit, withoutShort } from './admission.ts';
import { type Refused, refuse } from './answer.ts';
import { type Caller, mayUse, subjectsOf } from './caller.ts';
import type { ChatContext, SpendContext } from './context.ts';
import { refuseSpend } from './refuse-spend.ts';
import { randomUUID } from 'node:crypto';
import { microsOfAtoms, atomsOfMicros } from '../../accounts/rules/spend/spend-auth.ts';
import { acceptSpend } from './spend/accept-spend.ts';
import { releaseSpend } from './spend/record-spend.ts';
import { unknownModel } from './unknown-model.ts';
import { creditPlace } from './credit-place.ts';
import { limitsOf, refuseFull } from './chat-limits.ts';
import { promptTokensBound } from '../rules/prompt-bound.ts';
import { upperBoundMicros } from '../../base/values/price.ts';
import type { Share } from '../../base/runtime/places.ts';
import type { PaymentOffer } from '../../base/errors/payment-offer.ts';

/** Decides whether a completion may be made: its limits are counted and its maximum cost is held in one append. */
export async function admitChat(
  context: ChatContext,
  caller: Caller,
  request: ChatRequest,
  body: Uint8Array,
): Promise<AdmittedChat | Refused> {
  const { models, places } = context;
  const model = models.get(request.model);
  if (!model || !mayUse(caller, model)) return refuse(unknownModel(context, caller, request.model));
  const refused = checkRequest(request, model);
  if (refused) return refused;
  const leave = places.take(sharesOf(context, caller, model));
  if (!leave) return refuse(openAiError('too_many_running'), { retryAfterSecs: 1 });
  let result: Admitted | Refused | undefined;
  try {
    result = await admitForModel(context, caller, request, model, body);
  } finally {
    if (result?.kind !== 'admitted') leave();
  }
  return result.kind === 'admitted' ? { ...result, leave } : result;
}

/** A completion counts against each of the subjects that ask for it, one of a free model also against a lower limit. */
function sharesOf({ settings }: ChatContext, caller: Caller, { price }: ModelConfig): Share[] {
  const { maxConcurrentPerClient: max, maxConcurrentFreePerClient: maxFree } = settings;
  const subjects = subjectsOf(caller);
  const free = price === undefined ? subjects.map((subject): Share => [`free ${subject}`, maxFree]) : [];
  return [...subjects.map((subject): Share => [subject, max]), ...free];
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

/** Checks the request against its model; undefined when that allows it. */
function checkRequest(request: ChatRequest, model: ModelConfig): Refused | undefined {
  const { maxOutputTokens } = model;
  if ((request.maxTokens ?? 0) > maxOutputTokens) return refuseLength(request, maxOutputTokens);
  const isCachePriced = model.price?.cacheWriteNanosPerMillion !== undefined;
  const unpriced = unpricedParameter(request, model.allowedParameters, isCachePriced);
  return unpriced && refuse(unpriced);
}

/** Refuses a request without credentials, with the ways to pay for it. */
function refuseUnpaid(
  { spending, config }: Pick<ChatContext, 'spending' | 'config'>,
  costMicros: bigint,
): Refused {
  const place = creditPlace(config);
  const bought = place === undefined ? '' : `, whose credit is bought at ${place},`;
  const message =
    'This model costs credit, and the request carries no credential. Nothing was charged. ' +
    `Send an API key${bought} or use a model of the free tier.`;
  const payment = spending && offerOf(spending, costMicros);
  return refuse(openAiError('insufficient_funds', { message }), payment ? { payment } : {});
}

function refuseLength(request: ChatRequest, maxOutputTokens: number): Refused {
  const param = request.body['max_tokens'] == null ? 'max_completion_tokens' : 'max_tokens';
  const message = `${param} is above ${maxOutputTokens}, the longest answer of this model. Nothing was charged.`;
  return refuse(openAiError('invalid_value', { param, message }));
}

/** How often the affordable length is computed again while other requests spend from the same account. */
const maxTries = 3;

/**
 * Admits a completion that is paid from an account's credit. When the request sets no length, the answer may be as long as the
 * account can pay for.
 */
async function admitByCredit(
  context: ChatContext,
  caller: Caller,
  { request, model, requestedTokens, costOf }: PricedChat,
): Promise<Admitted | Refused> {
  for (let tries = 1, maxTokens = requestedTokens; ; tries++) {
    const isLast = request.maxTokens !== undefined || tries === maxTries;
    const result = await admit(
      context,
      caller,
      { request, model, maxTokens },
      { holdMicros: costOf(maxTokens), leastMicros: isLast ? undefined : costOf(1) },
    );
    if (result.kind !== 'short') return result;
    if (isLast) return result.refused;
    maxTokens = affordableTokens(result.availableMicros, maxTokens, costOf);
    if (maxTokens === 0) return result.refused;
  }
}

type Spender = Extract<Caller, { kind: 'spend_auth' }>;

/**
 * Admits a completion that a spend authorization pays for. A spend pays its whole amount, so that is the maximum cost of the
 * answer. The spend is accepted first, then the limits are checked; a limit that is known to be full is refused before both.
 */
async function admitBySpend(
  context: ChatContext,
  spending: SpendContext,
  caller: Spender,
  chat: PricedChat,
  body: Uint8Array,
): Promise<Admitted | Refused> {
  const { request, model, costOf } = chat;
  const coveredMicros = microsOfAtoms(caller.spend.auth.amount, spending.settings.atomsPerUnit);
  const maxTokens = coveredTokens(chat, coveredMicros);
  if (maxTokens === 0 || costOf(maxTokens) > coveredMicros) {
    const { amount } = offerOf(spending, costOf(request.maxTokens ?? 1));
    const message =
      `This request may cost up to ${amount} atoms, more than the spend authorization pays. Nothing was charged; ` +
      'sign a larger amount, or request fewer tokens.';
    return refuseSpend(invalidSpend('below_min_charge', message));
  }
  // saves accepting and releasing the spend for a request that comes too soon
  const full = context.findFullLimit(limitsOf(context, caller, false));
  if (full) return refuseFull(context, full, coveredMicros);
  const chatId = randomUUID();
  const result = await acceptSpend(spending, caller.spend, chatId, body);
  if (result.kind !== 'accepted') return refuseSpend(result);
  const { spend } = result;
  const admission = withoutShort(
    await admit(context, caller, { request, model, maxTokens }, { holdMicros: coveredMicros }, chatId),
  );
  if (admission.kind === 'admitted') return { ...admission, spend };
  await releaseSpend(spending, spend, admission.error.body.error.code);
  return admission;
}

/** The requested length if the request sets one; else the longest that the spend covers, 0 when it covers none. */
function coveredTokens({ request, requestedTokens, costOf }: PricedChat, coveredMicros: bigint): number {
  if (request.maxTokens !== undefined || costOf(requestedTokens) <= coveredMicros) return requestedTokens;
  return affordableTokens(coveredMicros, requestedTokens, costOf);
}

/** A request for a model that costs credit. */
interface PricedChat {
  readonly request: ChatRequest;
  readonly model: ModelConfig;
  /** The requested length of the answer, or the model's longest one. */
  readonly requestedTokens: number;
  /** The maximum cost of an answer of that length. */
  readonly costOf: (maxTokens: number) => bigint;
}

/** Undefined for a model of the free tier. */
function priceChat(request: ChatRequest, model: ModelConfig): PricedChat | undefined {
  const { price, contextLength, maxOutputTokens } = model;
  if (!price) return undefined;
  const bound = Math.min(promptTokensBound(request, contextLength), contextLength);
  const costOf = (maxTokens: number): bigint =>
    upperBoundMicros({ promptTokensBound: bound, maxTokens, n: request.n, price });
  return { request, model, requestedTokens: request.maxTokens ?? maxOutputTokens, costOf };
}

/** The longest answer below `tooMany` tokens that this much credit covers; 0 when it covers none. */
function affordableTokens(
  availableMicros: bigint,
  tooMany: number,
  costOf: (maxTokens: number) => bigint,
): number {
  let [low, high] = [0, tooMany];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (costOf(middle) <= availableMicros) low = middle;
    else high = middle;
  }
  return low;
}

function offerOf(
  { settings, prepaid }: Pick<SpendContext, 'settings' | 'prepaid'>,
  costMicros: bigint,
): PaymentOffer {
  const { token, network, minCharge, atomsPerUnit } = settings;
  const atoms = atomsOfMicros(costMicros, atomsPerUnit);
  return { amount: atoms > minCharge ? atoms : minCharge, token, recipient: prepaid.operator, network };
}

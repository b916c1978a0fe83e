import type { ModelConfig } from '../../base/config/config.ts';
import { type ChatRequest, readChatRequest } from '../rules/chat-request.ts';
import { unpricedParameter } from '../rules/unpriced-parameter.ts';
import { openAiError } from '../../base/errors/openai-error.ts';
import { invalidSpend } from './spend/refusal.ts';
import { type Admitted, type AdmittedChat, admit, type HoldCost, withoutShort } from './admission.ts';
import { type Refused, refuse } from './answer.ts';
import { type Caller, mayUse, spendingOf, subjectsOf } from './caller.ts';
import type { ChatContext, SpendContext } from './context.ts';
import { refuseSpend } from './refuse-spend.ts';
import { randomUUID } from 'node:crypto';
import { microsOfAtoms, atomsOfMicros } from '../../accounts/rules/spend/spend-auth.ts';
import { acceptSpend } from './spend/accept-spend.ts';
import { releaseSpend } from './spend/record-spend.ts';
import { unknownModel } from './unknown-model.ts';
import { creditPlace } from './credit-place.ts';
import { limitsOf, refuseFull, type Short } from './chat-limits.ts';
import { affordableTokens, defaultTokens, partsOfCredit } from '../rules/default-length.ts';
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
  if (caller.kind === 'x402') return admitPaid(context, caller, priced);
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
  { spending, config, isSold }: Pick<ChatContext, 'spending' | 'config' | 'isSold'>,
  costMicros: bigint,
): Refused {
  const place = creditPlace(config);
  const alone = isSold ? ' pay for this request alone by x402, as the header PAYMENT-REQUIRED offers,' : '';
  const bought = place === undefined ? '' : `, whose credit is bought at ${place},`;
  const message =
    'This model costs credit, and the request carries no credential. Nothing was charged. ' +
    `Send an API key${bought === '' && isSold ? ',' : bought}${alone} or use a model of the free tier.`;
  const payment = spending && offerOf(spending, costMicros);
  return refuse(openAiError('insufficient_funds', { message }), payment ? { payment } : {});
}

function refuseLength(request: ChatRequest, maxOutputTokens: number): Refused {
  const param = request.body['max_tokens'] == null ? 'max_completion_tokens' : 'max_tokens';
  const message = `${param} is above ${maxOutputTokens}, the longest answer of this model. Nothing was charged.`;
  return refuse(openAiError('invalid_value', { param, message }));
}

/** The whole answer, then a length for what is available; twice more while other processes spend from the same account. */
const maxTries = 4;

/** Admits a completion that is paid from an account's credit. */
async function admitByCredit(
  context: ChatContext,
  caller: Caller,
  priced: PricedChat,
): Promise<Admitted | Refused> {
  const { request, model, requestedTokens: maxTokens, costOf } = priced;
  if (request.maxTokens === undefined) return admitWithoutLength(context, caller, priced);
  const cost = { holdMicros: costOf(maxTokens) };
  return withoutShort(await admit(context, caller, { request, model, maxTokens }, cost));
}

/** The gateway sets the length that the request does not: {@link defaultTokens}. */
async function admitWithoutLength(
  context: ChatContext,
  caller: Caller,
  { request, model, requestedTokens, costOf }: PricedChat,
): Promise<Admitted | Refused> {
  const { askedHolds, typicalLengths } = context;
  const { account_id: accountId = 0 } = spendingOf(caller) ?? {};
  const admitLength = (maxTokens: number, cost: HoldCost): Promise<Admitted | Refused | Short> =>
    admit(context, caller, { request, model, maxTokens }, cost);
  const holdMicros = costOf(requestedTokens);
  const leastMicros = costOf(1);
  let result = await admitLength(requestedTokens, {
    holdMicros,
    neededMicros: holdMicros * partsOfCredit,
    leastMicros,
  });
  for (let tries = 2; result.kind === 'short' && tries <= maxTries; tries++) {
    const { availableMicros } = result;
    const maxTokens = defaultTokens({
      availableMicros,
      askedMicros: askedHolds.of(accountId),
      mostTokens: requestedTokens,
      typicalTokens: typicalLengths.of(model.name),
      costOf,
    });
    if (maxTokens === 0) return result.refused;
    const cost = { holdMicros: costOf(maxTokens), leastMicros: tries === maxTries ? undefined : leastMicros };
    result = await askedHolds.during(accountId, cost.holdMicros, () => admitLength(maxTokens, cost));
  }
  return withoutShort(result);
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

/** Admits a completion whose payment of at most an amount is on record. */
async function admitPaid(
  context: ChatContext,
  caller: Extract<Caller, { kind: 'x402' }>,
  chat: PricedChat,
): Promise<Admitted | Refused> {
  const { request, model, costOf } = chat;
  const { coveredMicros } = caller.order;
  const maxTokens = coveredTokens(chat, coveredMicros);
  // its price has risen since it was quoted
  if (maxTokens === 0 || costOf(maxTokens) > coveredMicros) return refuse(openAiError('insufficient_funds'));
  return withoutShort(
    await admit(context, caller, { request, model, maxTokens }, { holdMicros: coveredMicros }),
  );
}

/** The model of a request, and what it costs at most, in micros: 0 if it is free; the refusal of one that no payment changes. */
export function boundOf(
  context: ChatContext,
  caller: Caller,
  body: Buffer,
): { readonly kind: 'bound'; readonly model: string; readonly micros: bigint } | Refused {
  const request = readChatRequest(body);
  if ('invalid' in request) return refuse(request.invalid);
  const model = context.models.get(request.model);
  if (!model) return refuse(unknownModel(context, caller, request.model));
  const refused = checkRequest(request, model);
  if (refused) return refused;
  const priced = priceChat(request, model);
  const micros = priced ? priced.costOf(priced.requestedTokens) : 0n;
  return { kind: 'bound', model: model.name, micros };
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

function offerOf(
  { settings, prepaid }: Pick<SpendContext, 'settings' | 'prepaid'>,
  costMicros: bigint,
): PaymentOffer {
  const { token, network, minCharge, atomsPerUnit } = settings;
  const atoms = atomsOfMicros(costMicros, atomsPerUnit);
  return { amount: atoms > minCharge ? atoms : minCharge, token, recipient: prepaid.operator, network };
}

import { randomUUID } from 'node:crypto';
import type { ModelConfig } from '../config/config.ts';
import type { ChatRequest } from '../domain/chat/chat-request.ts';
import { creditText, upperBoundMicros } from '../domain/credit/price.ts';
import type { LedgerEvent } from '../domain/events/event.ts';
import { openAiError } from '../domain/errors/openai-error.ts';
import { promptTokensBound } from '../domain/chat/prompt-bound.ts';
import { microsOfAtoms } from '../domain/spend/spend-auth.ts';
import { unpricedParameter } from '../domain/chat/unpriced-parameter.ts';
import type { Admission, CreditCommand, CreditDetail, CreditRefusal } from '../store/append-batch.ts';
import { LaneFullError } from '../store/lane.ts';
import { type LimitState, type Refused, refuse } from './answer.ts';
import { type Caller, refuseKey, spendingOf } from './caller.ts';
import type { ChatContext } from './context.ts';
import { offerOf, spendError, type TakenSpend } from '../spend/spend.ts';
import { releaseSpend, takeSpend } from '../spend/take-spend.ts';

/** A completion that may be made: its place in the limits is taken, what it may cost is held. */
export interface AdmittedChat {
  readonly kind: 'admitted';
  readonly chatId: string;
  readonly caller: Caller;
  readonly model: ModelConfig;
  readonly request: ChatRequest;
  /** Of each choice, at most. */
  readonly maxTokens: number;
  /** What it may cost at most: 0 on a free model. */
  readonly holdMicros: bigint;
  /** What pays for it, where it is paid on a chain. */
  readonly spend?: TakenSpend;
  readonly limit: LimitState;
}

/** How often what an account can afford is computed anew, while others spend from it. */
const maxTries = 3;

/**
 * Decides whether a completion may be made, in one step with its limits and its credit. Without a limit of its own an
 * answer may be as long as the account can pay for.
 */
export async function admitChat(
  context: ChatContext,
  caller: Caller,
  request: ChatRequest,
  body: Uint8Array,
): Promise<AdmittedChat | Refused> {
  const model = context.models.get(request.model);
  if (!model) return refuse(openAiError('model_not_found', { param: 'model' }));
  if (caller.kind === 'api_key' && caller.key.models && !caller.key.models.includes(model.name))
    return refuse(
      openAiError('model_not_found', { param: 'model', message: 'This key may not use this model.' }),
    );
  const { maxOutputTokens, price } = model;
  const wanted = request.maxTokens ?? maxOutputTokens;
  if (wanted > maxOutputTokens) return tooLong(request, maxOutputTokens);
  const unpriced = unpricedParameter(request, model.allowedParameters);
  if (unpriced) return refuse(unpriced);
  if (!price) {
    const answer = await admit(context, caller, request, model, wanted, { holdMicros: 0n });
    return answer.kind === 'short' ? answer.refused : answer;
  }

  const promptBound = Math.min(promptTokensBound(request), model.contextLength);
  const costOf = (maxTokens: number): bigint =>
    upperBoundMicros({ promptTokensBound: promptBound, maxTokens, n: request.n, price });
  if (caller.kind === 'anonymous') return refuseUnpaid(context, costOf(wanted));
  if (caller.kind === 'spend_auth') return admitSpend(context, caller, request, model, costOf, body);
  for (let tries = 1, maxTokens = wanted; ; tries++) {
    const isLast = request.maxTokens !== undefined || tries === maxTries;
    const answer = await admit(context, caller, request, model, maxTokens, {
      holdMicros: costOf(maxTokens),
      leastMicros: isLast ? undefined : costOf(1),
    });
    if (answer.kind !== 'short') return answer;
    const { available, refused } = answer;
    if (isLast) return refused;
    maxTokens = affordableTokens(available, maxTokens, costOf);
    if (maxTokens === 0) return refused;
  }
}

function refuseUnpaid({ spending }: ChatContext, costMicros: bigint): Refused {
  const message =
    'This model costs credit, and the request carries no key; models of the free tier need none.';
  const payment = spending && offerOf(spending, costMicros);
  return refuse(openAiError('insufficient_funds', { message }), payment ? { payment } : {});
}

/**
 * A spend pays all of its amount, so that is what an answer may cost. Its nonce is taken, then its limit is asked; one that
 * is known to be full is told before that.
 */
async function admitSpend(
  context: ChatContext,
  caller: Extract<Caller, { kind: 'spend_auth' }>,
  request: ChatRequest,
  model: ModelConfig,
  costOf: (maxTokens: number) => bigint,
  body: Uint8Array,
): Promise<AdmittedChat | Refused> {
  const { spending } = context;
  if (!spending) return refuse(spendError('invalid_spend_auth'));
  const coveredMicros = microsOfAtoms(caller.spend.auth.amount, spending.settings.atomsPerUnit);
  const wanted = request.maxTokens ?? model.maxOutputTokens;
  const isCovered = costOf(wanted) <= coveredMicros;
  const maxTokens =
    isCovered || request.maxTokens !== undefined ? wanted : affordableTokens(coveredMicros, wanted, costOf);
  if (maxTokens === 0 || costOf(maxTokens) > coveredMicros) {
    const { amount } = offerOf(spending, costOf(request.maxTokens ?? 1));
    return refuse(spendError('below_min_charge', `This request may cost up to ${amount} atoms.`));
  }
  // no nonce is taken and given up again for each that comes too soon
  const tooSoon = refuseFullLimit(context, caller, coveredMicros);
  if (tooSoon) return tooSoon;
  const chatId = randomUUID();
  const spend = await takeSpend(context, spending, caller.spend, chatId, body);
  if ('kind' in spend) return spend;
  const answer = await admit(
    context,
    caller,
    request,
    model,
    maxTokens,
    { holdMicros: coveredMicros },
    chatId,
  );
  if (answer.kind === 'admitted') return { ...answer, spend };
  const refused = answer.kind === 'short' ? answer.refused : answer;
  await releaseSpend(context, spend, refused.error.body.error.code);
  return refused;
}

function refuseFullLimit(context: ChatContext, caller: Caller, holdMicros: bigint): Refused | undefined {
  const limits = limitsOf(context, caller);
  const full = context.findFullLimit(limits);
  if (!full) return undefined;
  const told = refusal(context, full.code, full.detail, holdMicros, limitState(limits, full.detail));
  return told.kind === 'short' ? told.refused : told;
}

/** The longest answer, below `tooMany`, that this much credit covers; 0 where it covers none. */
function affordableTokens(available: bigint, tooMany: number, costOf: (maxTokens: number) => bigint): number {
  let [low, high] = [0, tooMany];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (costOf(middle) <= available) low = middle;
    else high = middle;
  }
  return low;
}

function tooLong(request: ChatRequest, maxOutputTokens: number): Refused {
  const param = request.body['max_tokens'] == null ? 'max_completion_tokens' : 'max_tokens';
  const message = `${param} is above ${maxOutputTokens}, the longest answer of this model.`;
  return refuse(openAiError('invalid_value', { param, message }));
}

/** Credit that does not suffice for as much as was asked, but may for less. */
interface Short {
  readonly kind: 'short';
  readonly available: bigint;
  readonly refused: Refused;
}

async function admit(
  context: ChatContext,
  caller: Caller,
  request: ChatRequest,
  model: ModelConfig,
  maxTokens: number,
  cost: Pick<Admission, 'holdMicros' | 'leastMicros'>,
  chatId: string = randomUUID(),
): Promise<AdmittedChat | Refused | Short> {
  const { holdMicros } = cost;
  const limits = limitsOf(context, caller);
  const outcome = await append(context, {
    stream: `chat:${chatId}`,
    events: admittedEvents(caller, request, model, chatId, holdMicros),
    admit: {
      ...limits,
      ...cost,
      chatId,
      processId: context.processId,
      // what is paid on a chain holds nothing here
      ...(spendingOf(caller) ? {} : { holdMicros: 0n, leastMicros: undefined }),
      keyId: spendingOf(caller)?.key_id,
      accountId: spendingOf(caller)?.account_id,
    },
    refused: refusedEvents(caller, model),
  });
  if ('kind' in outcome) return outcome;
  const limit = limitState(limits, outcome.detail);
  if (outcome.outcome === 'ok')
    return { kind: 'admitted', chatId, caller, model, request, maxTokens, holdMicros, limit };
  if (outcome.code === 'invalid_api_key' && caller.kind === 'api_key') return refuseKey(context, caller);
  return refusal(context, outcome.code, outcome.detail, holdMicros, limit);
}

/** A lane without room admits nobody: nothing was recorded. */
async function append(context: ChatContext, command: CreditCommand) {
  try {
    return await context.lane.appendCredit(command);
  } catch (error) {
    if (error instanceof LaneFullError) return refuse(openAiError('overloaded'), { retryAfterSecs: 1 });
    throw error;
  }
}

function limitsOf(
  { settings }: ChatContext,
  caller: Caller,
): Pick<Admission, 'subject' | 'perMinute' | 'perDay'> {
  switch (caller.kind) {
    case 'api_key':
      return { subject: `key:${caller.key.keyId}`, perMinute: settings.keyPerMinute, perDay: undefined };
    case 'session':
      return { subject: `user:${caller.userId}`, perMinute: settings.sessionPerMinute, perDay: undefined };
    case 'spend_auth': {
      const subject = `spend:${caller.spend.auth.commitment}`;
      return { subject, perMinute: settings.spendAuthPerMinute, perDay: undefined };
    }
    case 'anonymous':
      return {
        subject: caller.subject,
        perMinute: settings.anonymousPerMinute,
        perDay: settings.anonymousPerDay,
      };
  }
}

/** Who it was, as the ledger says it: never a client's address. */
function callerData(caller: Caller) {
  return { caller: caller.kind, ...spendingOf(caller) };
}

function admittedEvents(
  caller: Caller,
  request: ChatRequest,
  model: ModelConfig,
  chatId: string,
  holdMicros: bigint,
): LedgerEvent[] {
  const admitted: LedgerEvent = {
    type: 'chat_admitted',
    data: { ...callerData(caller), model: model.name, streaming: request.stream },
  };
  const spending = spendingOf(caller);
  if (!spending || holdMicros === 0n) return [admitted];
  const data = { ...spending, chat_id: chatId, amount_micros: String(holdMicros) };
  return [admitted, { type: 'credit_held', data }];
}

function refusedEvents(
  caller: Caller,
  model: ModelConfig,
): Partial<Record<CreditRefusal, readonly LedgerEvent[]>> {
  const told = (code: CreditRefusal): LedgerEvent[] => [
    { type: 'chat_refused', data: { ...callerData(caller), code, model: model.name } },
  ];
  return {
    invalid_api_key: told('invalid_api_key'),
    rate_limit_exceeded: told('rate_limit_exceeded'),
    daily_quota_exceeded: told('daily_quota_exceeded'),
    insufficient_funds: told('insufficient_funds'),
    key_cap_reached: told('key_cap_reached'),
  };
}

function limitState(
  { perMinute, perDay }: Pick<Admission, 'perMinute' | 'perDay'>,
  detail: CreditDetail,
): LimitState {
  const minute = {
    perMinute,
    remaining: numberOf(detail.remaining),
    resetSecs: Math.ceil(numberOf(detail.reset_ms) / 1_000),
  };
  if (perDay === undefined) return minute;
  const resetSecs = Math.ceil(numberOf(detail.reset_today_ms) / 1_000);
  return { ...minute, day: { limit: perDay, remaining: numberOf(detail.remaining_today), resetSecs } };
}

function numberOf(value: number | null | undefined): number {
  if (value == null) throw new Error('a verdict on an admission lacks a number');
  return value;
}

function refusal(
  { settings }: ChatContext,
  code: CreditRefusal,
  detail: CreditDetail,
  holdMicros: bigint,
  limit: LimitState,
): Refused | Short {
  switch (code) {
    case 'rate_limit_exceeded':
    case 'daily_quota_exceeded': {
      const retryAfterSecs = Math.max(1, Math.ceil(numberOf(detail.retry_ms) / 1_000));
      return refuse(openAiError(code), { retryAfterSecs, limit });
    }
    case 'insufficient_funds':
    case 'key_cap_reached': {
      const available = BigInt(numberOf(detail.available));
      const what = code === 'insufficient_funds' ? 'The balance' : 'What this key may still spend';
      const message =
        `${what} is ${creditText(available)} ${settings.currency}, and this request may cost up to ` +
        `${creditText(holdMicros)} ${settings.currency}. Ask for fewer tokens, or add credit.`;
      const refused = refuse(openAiError('insufficient_funds', { message }), { limit });
      return { kind: 'short', available, refused };
    }
    default:
      throw new Error(`an admission was refused as ${code}`);
  }
}

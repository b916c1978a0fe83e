import { randomUUID } from 'node:crypto';
import type { ModelConfig } from '../../base/config/config.ts';
import type { ChatRequest } from '../rules/chat-request.ts';
import { openAiError } from '../../base/errors/openai-error.ts';
import type { AcceptedSpend } from './spend/spend.ts';
import type {
  Admission,
  CreditCommand,
  CreditOutcome,
  CreditRefusal,
} from '../../ledger/store/append-batch.ts';
import { LaneFullError } from '../../ledger/store/lane.ts';
import { type LimitState, type Refused, refuse } from './answer.ts';
import { type Caller, refuseKey, spendingOf } from './caller.ts';
import { limitsOf, limitStateOf, refuseAdmission, type Short } from './chat-limits.ts';
import type { ChatContext } from './context.ts';
import { type ModelPrice, priceData } from '../../base/values/price.ts';
import type { LedgerEvent } from '../../ledger/rules/event.ts';
import type { ApiKey } from '../../accounts/store/api-keys.ts';

/** A completion that may be made: it counts against its limits, and its maximum cost is held. */
export interface AdmittedChat {
  readonly kind: 'admitted';
  readonly chatId: string;
  readonly caller: Caller;
  readonly model: ModelConfig;
  readonly request: ChatRequest;
  /** The maximum for each choice. */
  readonly maxTokens: number;
  /** The maximum cost: 0 on a free model. */
  readonly holdMicros: bigint;
  /** The spend that pays for it, when it is paid on a chain. */
  readonly spend?: AcceptedSpend;
  readonly limit: LimitState;
  /** Ends its counting among the completions that run. */
  readonly leave: () => void;
}

/** An admission whose completion is not counted yet among those that run. */
export type Admitted = Omit<AdmittedChat, 'leave'>;

/** What an admission holds, and on which condition. */
export type HoldCost = Pick<Admission, 'holdMicros' | 'neededMicros' | 'leastMicros'>;

/** Counts the completion against its limits, and holds its maximum cost, in one append. */
export async function admit(
  context: ChatContext,
  caller: Caller,
  chat: { readonly request: ChatRequest; readonly model: ModelConfig; readonly maxTokens: number },
  cost: HoldCost,
  chatId: string = randomUUID(),
): Promise<Admitted | Refused | Short> {
  const { request, model } = chat;
  const { holdMicros } = cost;
  const limits = limitsOf(context, caller, model.price === undefined);
  const spending = spendingOf(caller);
  const outcome = await appendAdmission(context, {
    stream: `chat:${chatId}`,
    events: admittedEvents(caller, {
      chatId,
      model: model.name,
      price: model.price,
      streaming: request.stream,
      holdMicros,
    }),
    admit: {
      ...limits,
      ...cost,
      chatId,
      processId: context.processId,
      // a completion paid on a chain holds no credit
      ...(spending ? {} : { holdMicros: 0n, neededMicros: undefined, leastMicros: undefined }),
      keyId: spending?.key_id,
      accountId: spending?.account_id,
    },
    refused: refusedEvents(caller, model.name),
  });
  if (outcome === 'lane_full') return refuse(openAiError('overloaded'), { retryAfterSecs: 1 });
  const limit = limitStateOf(outcome.detail);
  if (outcome.outcome === 'ok') return { kind: 'admitted', chatId, caller, ...chat, holdMicros, limit };
  if (outcome.code === 'invalid_api_key' && caller.kind === 'api_key') return refuseKey(context, caller);
  return refuseAdmission(context, outcome, caller, holdMicros, limit);
}

/** Sends an admission, or a request that is only counted. A refusal beyond what is recorded is summed. */
export async function appendAdmission(
  { lane, config, requestTally }: ChatContext,
  command: CreditCommand & { readonly admit: Admission },
): Promise<CreditOutcome | 'lane_full'> {
  const admission = { ...command.admit, refusalEventsPerSec: config.limits.quoteEventsPerSec };
  try {
    const outcome = await lane.appendCredit({ ...command, admit: admission });
    if (outcome.detail.is_summed) requestTally.addRefusal('chat_refused');
    return outcome;
  } catch (error) {
    if (error instanceof LaneFullError) return 'lane_full';
    throw error;
  }
}

export function withoutShort(result: Admitted | Refused | Short): Admitted | Refused {
  return result.kind === 'short' ? result.refused : result;
}

/** The caller as the ledger records it, without the client's address. */
function callerData(caller: Caller) {
  return { caller: caller.kind, ...spendingOf(caller) };
}

function admittedEvents(
  caller: Caller,
  chat: {
    readonly chatId: string;
    readonly model: string;
    readonly price: ModelPrice | undefined;
    readonly streaming: boolean;
    readonly holdMicros: bigint;
  },
): LedgerEvent[] {
  const { chatId, model, price, streaming, holdMicros } = chat;
  const admitted: LedgerEvent = {
    type: 'chat_admitted',
    data: { ...callerData(caller), model, streaming, ...(price && { price: priceData(price) }) },
  };
  const spending = spendingOf(caller);
  if (!spending || holdMicros === 0n) return [admitted];
  const data = { ...spending, chat_id: chatId, amount_micros: String(holdMicros) };
  return [admitted, { type: 'credit_held', data }];
}

type RefusedEvents = Readonly<Partial<Record<CreditRefusal, readonly LedgerEvent[]>>>;

/** Of the keys used lately, by model; the empty name stands for none. */
const ofKeys = new WeakMap<ApiKey, Map<string, RefusedEvents>>();

/** What is recorded instead when the ledger refuses the admission. A key's are made, and so encoded, once for each model. */
export function refusedEvents(caller: Caller, model: string | undefined): RefusedEvents {
  if (caller.kind !== 'api_key') return makeRefused(caller, model);
  const byModel = ofKeys.get(caller.key) ?? new Map<string, RefusedEvents>();
  ofKeys.set(caller.key, byModel);
  const known = byModel.get(model ?? '') ?? makeRefused(caller, model);
  byModel.set(model ?? '', known);
  return known;
}

function makeRefused(caller: Caller, model: string | undefined): RefusedEvents {
  const refused = (code: CreditRefusal): LedgerEvent[] => [
    { type: 'chat_refused', data: { ...callerData(caller), code, ...(model !== undefined && { model }) } },
  ];
  return {
    invalid_api_key: refused('invalid_api_key'),
    rate_limit_exceeded: refused('rate_limit_exceeded'),
    daily_quota_exceeded: refused('daily_quota_exceeded'),
    insufficient_funds: refused('insufficient_funds'),
    key_cap_reached: refused('key_cap_reached'),
    key_budget_reached: refused('key_budget_reached'),
  };
}

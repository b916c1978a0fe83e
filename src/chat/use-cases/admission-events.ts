import { type ModelPrice, priceData } from '../../base/values/price.ts';
import type { LedgerEvent } from '../../ledger/rules/event.ts';
import type { ApiKey } from '../../accounts/store/api-keys.ts';
import type { CreditRefusal } from '../../ledger/store/append-batch.ts';
import { type Caller, spendingOf } from './caller.ts';

/** The caller as the ledger records it, without the client's address. */
function callerData(caller: Caller) {
  return { caller: caller.kind, ...spendingOf(caller) };
}

export function admittedEvents(
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

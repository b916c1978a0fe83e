import type { LedgerEvent } from '../domain/events/event.ts';
import type { CreditRefusal } from '../store/append-batch.ts';
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
    readonly streaming: boolean;
    readonly holdMicros: bigint;
  },
): LedgerEvent[] {
  const { chatId, model, streaming, holdMicros } = chat;
  const admitted: LedgerEvent = {
    type: 'chat_admitted',
    data: { ...callerData(caller), model, streaming },
  };
  const spending = spendingOf(caller);
  if (!spending || holdMicros === 0n) return [admitted];
  const data = { ...spending, chat_id: chatId, amount_micros: String(holdMicros) };
  return [admitted, { type: 'credit_held', data }];
}

/** What is recorded instead when the ledger refuses the admission. */
export function refusedEvents(
  caller: Caller,
  model: string | undefined,
): Partial<Record<CreditRefusal, readonly LedgerEvent[]>> {
  const refused = (code: CreditRefusal): LedgerEvent[] => [
    { type: 'chat_refused', data: { ...callerData(caller), code, ...(model !== undefined && { model }) } },
  ];
  return {
    invalid_api_key: refused('invalid_api_key'),
    rate_limit_exceeded: refused('rate_limit_exceeded'),
    daily_quota_exceeded: refused('daily_quota_exceeded'),
    insufficient_funds: refused('insufficient_funds'),
    key_cap_reached: refused('key_cap_reached'),
  };
}

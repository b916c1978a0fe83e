import type { RecordedEvent } from '../../../../ledger/rules/event.ts';
import type { ExpectedRow } from '../../../../ledger/store/stored-rows.ts';

/** The row of `tollbook.chat_hold` of a completion; undefined where nothing is held for it any more, or never was. */
export function holdRowOf(events: readonly RecordedEvent[]): (ExpectedRow & { chat_id: string }) | undefined {
  const held = events.find(({ type }) => type === 'credit_held');
  if (held?.type !== 'credit_held') return undefined;
  const ended = events.some(({ type }) => type === 'credit_captured' || type === 'credit_released');
  const { chat_id, account_id, key_id = null, amount_micros: amount } = held.data;
  return ended || amount === '0' ? undefined : { chat_id, account_id, key_id, amount };
}

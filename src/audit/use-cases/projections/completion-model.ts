import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import type { CompletionRow } from '../../../ledger/store/completion-row.ts';

/** The completions of accounts among whole streams, in their present state. */
export function completionRowsOf(streams: readonly (readonly RecordedEvent[])[]): CompletionRow[] {
  return streams.flatMap((events) => rowOf(events) ?? []);
}

/** Undefined for a stream other than an account's completion. Of two settlements of a completion the last counts. */
function rowOf(events: readonly RecordedEvent[]): CompletionRow | undefined {
  const [first] = events;
  if (first?.type !== 'chat_admitted' || first.data.account_id === undefined) return undefined;
  const { account_id, key_id = 0, model } = first.data;
  const of = { account_id, seq: first.seq, at: first.at, chat_id: first.stream.slice('chat:'.length) };
  const end = events.findLast(({ type }) => type === 'chat_completed' || type === 'chat_failed');
  if (end?.type !== 'chat_completed')
    return { ...of, key_id, model, status: end ? 'failed' : 'running', ...nothing };
  const { ending: status, prompt_tokens, completion_tokens, cached_tokens = 0 } = end.data;
  const { cost_micros: cost, uncovered_micros: uncovered = '0' } = end.data;
  const tokens = { prompt_tokens, completion_tokens, cached_tokens };
  return { ...of, key_id, model, status, ...tokens, cost: String(BigInt(cost) - BigInt(uncovered)) };
}

const nothing = { prompt_tokens: null, completion_tokens: null, cached_tokens: null, cost: null };

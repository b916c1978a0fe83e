import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import type { UsageRow } from '../../../ledger/store/projection.ts';

type Usage = Omit<UsageRow, 'account_id' | 'day' | 'model' | 'key_id'>;
type Totals = { -readonly [Name in keyof Usage]: bigint };

const nothing: Totals = {
  requests: 0n,
  failed: 0n,
  prompt_tokens: 0n,
  completion_tokens: 0n,
  cached_tokens: 0n,
  cost: 0n,
};

/**
 * What the events after a place in the ledger change in the usage of accounts: whole streams of completions, folded to their present state
 * less their state at that place. Of two settlements of a completion the last counts.
 */
export function usageChanges(streams: readonly (readonly RecordedEvent[])[], afterSeq: number): UsageRow[] {
  const totals = new Map<string, { readonly of: Place; readonly sum: Totals }>();
  for (const events of streams) {
    const of = placeOf(events);
    if (!of) continue;
    const [now, before] = [usageOf(events), usageOf(events.filter(({ seq }) => seq <= afterSeq))];
    const known = totals.get(JSON.stringify(of)) ?? { of, sum: { ...nothing } };
    for (const name of names) known.sum[name] += now[name] - before[name];
    totals.set(JSON.stringify(of), known);
  }
  return [...totals.values()].flatMap(({ of, sum }) =>
    names.some((name) => sum[name] !== 0n) ? [{ ...of, ...asText(sum) }] : [],
  );
}

type Place = Pick<UsageRow, 'account_id' | 'day' | 'model' | 'key_id'>;
const names = Object.keys(nothing) as (keyof Totals)[];

/** Undefined for a stream other than an account's completion. */
function placeOf([first]: readonly RecordedEvent[]): Place | undefined {
  if (first?.type !== 'chat_admitted' || first.data.account_id === undefined) return undefined;
  const { account_id: accountId, key_id: keyId = 0, model } = first.data;
  return { account_id: accountId, day: first.at.slice(0, 10), model, key_id: keyId };
}

function usageOf(events: readonly RecordedEvent[]): Totals {
  const end = events.findLast(({ type }) => type === 'chat_completed' || type === 'chat_failed');
  if (end?.type === 'chat_failed') return { ...nothing, failed: 1n };
  if (end?.type !== 'chat_completed') return nothing;
  const { prompt_tokens: prompt, completion_tokens: completion, cached_tokens: cached = 0 } = end.data;
  const { cost_micros: cost, uncovered_micros: uncovered = '0' } = end.data;
  return {
    requests: 1n,
    failed: 0n,
    prompt_tokens: BigInt(prompt),
    completion_tokens: BigInt(completion),
    cached_tokens: BigInt(cached),
    cost: BigInt(cost) - BigInt(uncovered),
  };
}

function asText(sum: Totals): Usage {
  const { requests, failed, prompt_tokens, completion_tokens, cached_tokens, cost } = sum;
  return {
    requests: String(requests),
    failed: String(failed),
    prompt_tokens: String(prompt_tokens),
    completion_tokens: String(completion_tokens),
    cached_tokens: String(cached_tokens),
    cost: String(cost),
  };
}

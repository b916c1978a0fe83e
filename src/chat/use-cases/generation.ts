import { creditText, type PriceData, priceOfData, pricesOf, priceText } from '../../base/values/price.ts';
import type { RecordedEvent } from '../../ledger/rules/event.ts';
import { readStream } from '../../ledger/store/streams.ts';
import type { ChatContext } from './context.ts';

/** Of a million tokens each, as decimal texts. */
interface GenerationPrice {
  readonly input: string;
  readonly output: string;
  readonly cached_input: string;
  readonly cache_write: string;
}

/** One completion as the ledger records it, without its request and answer. */
export interface Generation {
  readonly id: string;
  readonly model: string;
  readonly upstream: string | null;
  readonly created_at: string;
  readonly streamed: boolean;
  /** `running` until it is settled. */
  readonly status: 'running' | 'failed' | 'completed' | 'cut' | 'client_left' | 'recovered';
  readonly prompt_tokens: number | null;
  readonly completion_tokens: number | null;
  /** Of the prompt's: read from the upstream's cache. */
  readonly cached_tokens: number | null;
  /** Of the prompt's: written to that cache. */
  readonly cache_write_tokens: number | null;
  /** The gateway has estimated some of the usage. */
  readonly is_estimate: boolean | null;
  /** What a million tokens cost, fixed at its admission; null for a free model, and if the ledger does not say it. */
  readonly price: GenerationPrice | null;
  /** Decimal text in the currency. */
  readonly cost: string | null;
  /** What was held, captured of it (less corrections) and released, in the currency; null without credit. */
  readonly held: string | null;
  readonly captured: string | null;
  readonly released: string | null;
  /** The key that it was asked with; null for a session. */
  readonly key_id: number | null;
  readonly ended_at: string | null;
  /** A machine-readable code, where something went wrong. */
  readonly reason: string | null;
  /** Its receipt: the places of its events in the ledger, whose proofs the log gives. */
  readonly events: readonly { readonly seq: number; readonly type: string; readonly at: string }[];
  readonly first_byte_ms: number | null;
  readonly latency_ms: number | null;
}

/** The record of a completion for the account that paid for it; undefined for other accounts and for an unknown id. */
export async function readGeneration(
  { pool }: Pick<ChatContext, 'pool'>,
  { accountId }: { readonly accountId: number },
  chatId: string,
): Promise<Generation | undefined> {
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(chatId)) return undefined;
  const { events } = await readStream(pool, `chat:${chatId}`);
  const [first] = events;
  if (first?.type !== 'chat_admitted' || first.data.account_id !== accountId) return undefined;
  const { model, streaming } = first.data;
  // the end that the owning process records after a recovery has the actual cost
  const end = events.findLast(isEnd);
  const completed = end?.type === 'chat_completed' ? end.data : undefined;
  return {
    id: chatId,
    model,
    upstream: end?.data.upstream ?? null,
    created_at: first.at,
    streamed: streaming,
    status: completed?.ending ?? (end ? 'failed' : 'running'),
    prompt_tokens: completed?.prompt_tokens ?? null,
    completion_tokens: completed?.completion_tokens ?? null,
    cached_tokens: completed ? (completed.cached_tokens ?? 0) : null,
    cache_write_tokens: completed ? (completed.cache_write_tokens ?? 0) : null,
    is_estimate: completed?.is_estimate ?? null,
    price: first.data.price ? priceTexts(first.data.price) : null,
    cost: completed
      ? creditText(BigInt(completed.cost_micros) - BigInt(completed.uncovered_micros ?? 0))
      : null,
    ...creditOf(events),
    key_id: first.data.key_id ?? null,
    ended_at: end?.at ?? null,
    reason: end?.data.reason ?? null,
    events: events.map(({ seq, type, at }) => ({ seq, type, at })),
    first_byte_ms: completed?.first_byte_ms ?? null,
    latency_ms: completed?.latency_ms ?? null,
  };
}

function priceTexts(data: PriceData): GenerationPrice {
  const { input, output, cached, cacheWrite } = pricesOf(priceOfData(data));
  return {
    input: priceText(input),
    output: priceText(output),
    cached_input: priceText(cached),
    cache_write: priceText(cacheWrite),
  };
}

/** The moves of credit of a completion; a corrected amount was captured first and given back. */
function creditOf(events: readonly RecordedEvent[]): Pick<Generation, 'held' | 'captured' | 'released'> {
  const sums = { credit_held: 0n, credit_captured: 0n, credit_released: 0n, credit_corrected: 0n };
  for (const { type, data } of events)
    if (
      type === 'credit_held' ||
      type === 'credit_captured' ||
      type === 'credit_released' ||
      type === 'credit_corrected'
    )
      sums[type] += BigInt(data.amount_micros);
  if (sums.credit_held === 0n) return { held: null, captured: null, released: null };
  return {
    held: creditText(sums.credit_held),
    captured: creditText(sums.credit_captured - sums.credit_corrected),
    released: creditText(sums.credit_released + sums.credit_corrected),
  };
}

function isEnd(
  event: RecordedEvent,
): event is Extract<RecordedEvent, { type: 'chat_completed' | 'chat_failed' }> {
  return event.type === 'chat_completed' || event.type === 'chat_failed';
}

import { isJsonObject, type JsonObject } from '../../base/values/exact-json.ts';

/** The tokens of an answer as its upstream counts them; zero is a valid count. */
export interface ChatUsage {
  /** All of the prompt, those of a cache and of cited sources included. */
  readonly promptTokens: number;
  /** All that the model wrote, its reasoning included. */
  readonly completionTokens: number;
  /** How many of the prompt's tokens came from a cache. */
  readonly cachedTokens?: number;
  /** How many of them were written to one; with `cachedTokens` at most the prompt's. */
  readonly cacheWriteTokens?: number;
}

export type UsageReading =
  | { readonly kind: 'counted'; readonly usage: ChatUsage }
  /** A missing or an empty count is not reported. */
  | { readonly kind: 'none' }
  /** A given count is not a whole number. */
  | { readonly kind: 'malformed' };

/** OpenAI's and Kimi's, DeepSeek's, Anthropic's and Mistral's. */
const cachedNames = [
  'cached_tokens',
  'prompt_cache_hit_tokens',
  'cache_read_input_tokens',
  'num_cached_tokens',
];
/** OpenAI's and OpenRouter's, Anthropic's and Qwen's, LiteLLM's. */
const writtenNames = ['cache_write_tokens', 'cache_creation_input_tokens', 'cache_creation_tokens'];

/**
 * Reads a usage object in the forms of all vendors. A detail that is not a whole number, or more than its total, is
 * left out.
 */
export function readUsage(value: unknown): UsageReading {
  if (!isJsonObject(value)) return { kind: 'none' };
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = value;
  if (!isCount(prompt) || !isCount(completion))
    return {
      kind: [prompt, completion].every((count) => count == null || isCount(count)) ? 'none' : 'malformed',
    };
  const promptParts = [value['prompt_tokens_details'], value];
  const cached = largest(promptParts, cachedNames);
  const written = largest(promptParts, writtenNames);
  const reasoning = largest([value['completion_tokens_details'], value], ['reasoning_tokens']);
  // Perplexity's, which no other count includes
  const cited = largest([value], ['citation_tokens']) ?? 0;
  const above = isCount(total) ? Math.max(0, total - prompt - completion) : 0;
  const { ofCache, ofReasoning } = besideOf({
    beside: above >= cited ? above - cited : above,
    completion,
    reasoning,
    cache: (cached ?? 0) + (written ?? 0),
  });
  const promptTokens = Math.min(prompt + cited + ofCache, Number.MAX_SAFE_INTEGER);
  const cachedTokens = cached !== undefined && cached <= promptTokens ? cached : undefined;
  const isWritten = written !== undefined && written <= promptTokens - (cachedTokens ?? 0);
  return {
    kind: 'counted',
    usage: {
      promptTokens,
      completionTokens: Math.min(completion + ofReasoning, Number.MAX_SAFE_INTEGER),
      ...(cachedTokens !== undefined && { cachedTokens }),
      ...(isWritten && { cacheWriteTokens: written }),
    },
  };
}

/**
 * The tokens that are counted in addition to the prompt and the completion: OpenAI counts those of the cache and the reasoning among
 * them, xAI and Gemini add the reasoning only to the total, and translators of Anthropic's answers do so with the cache.
 * @param beside by how much the total is above their sum
 */
function besideOf(counts: {
  readonly beside: number;
  readonly completion: number;
  readonly reasoning: number | undefined;
  readonly cache: number;
}): { readonly ofCache: number; readonly ofReasoning: number } {
  const { beside, completion, reasoning, cache } = counts;
  // more than the completion, so none of it, whatever the total says
  if (reasoning !== undefined && reasoning > completion && beside < reasoning)
    return { ofCache: 0, ofReasoning: reasoning };
  const isOfCache = cache > 0 && beside !== reasoning && [cache, cache + (reasoning ?? 0)].includes(beside);
  const ofCache = isOfCache ? cache : 0;
  // Gemini names no reasoning
  return { ofCache, ofReasoning: Math.min(beside - ofCache, reasoning ?? beside) };
}

/** The largest count under one of these names: translators of answers add zeros under names that they do not fill. */
function largest(places: readonly unknown[], names: readonly string[]): number | undefined {
  const counts = places
    .filter(isJsonObject)
    .flatMap((place: JsonObject) => names.map((name) => place[name]))
    .filter(isCount);
  return counts.length > 0 ? Math.max(...counts) : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createChatReader } from '../../../src/chat/rules/chat-answer.ts';
import { type ChatUsage, readUsage } from '../../../src/chat/rules/chat-usage.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const choice = { index: 0, delta: { content: 'ab' }, finish_reason: null };
const end = { index: 0, delta: {}, finish_reason: 'stop' };
const chunk = (members: object = {}): object => ({
  object: 'chat.completion.chunk',
  choices: [choice],
  ...members,
});

interface VendorForm {
  readonly vendor: string;
  /** As the vendor writes it in a whole answer. */
  readonly usage: object | undefined;
  /** The chunks of a stream that end with it; without them it comes in its own chunk. */
  readonly chunks?: readonly object[];
  readonly read: ChatUsage | undefined;
}

const openAi = {
  prompt_tokens: 2006,
  completion_tokens: 500,
  total_tokens: 2506,
  prompt_tokens_details: { cached_tokens: 1920, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: 200,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
};
const groq = {
  queue_time: 0.07,
  prompt_tokens: 23,
  completion_tokens: 19,
  total_tokens: 42,
  total_time: 0.028,
};
const kimi = { prompt_tokens: 1000, completion_tokens: 13, total_tokens: 1013, cached_tokens: 900 };
const plain = { prompt_tokens: 14, completion_tokens: 7, total_tokens: 21 };

const forms: readonly VendorForm[] = [
  {
    vendor: 'OpenAI, with reasoning among the completion',
    usage: openAi,
    read: { promptTokens: 2006, completionTokens: 500, cachedTokens: 1920 },
  },
  {
    vendor: 'OpenAI, with tokens written to the cache',
    usage: { ...openAi, prompt_tokens_details: { cached_tokens: 1000, cache_write_tokens: 1006 } },
    read: { promptTokens: 2006, completionTokens: 500, cachedTokens: 1000, cacheWriteTokens: 1006 },
  },
  {
    vendor: 'Azure, whose first chunk has no choice',
    usage: openAi,
    chunks: [
      { choices: [], prompt_filter_results: [{ prompt_index: 0 }], usage: null },
      chunk({ usage: null }),
      chunk({ choices: [], usage: openAi }),
    ],
    read: { promptTokens: 2006, completionTokens: 500, cachedTokens: 1920 },
  },
  {
    vendor: 'xAI, with reasoning beside the completion',
    usage: {
      prompt_tokens: 10_120,
      completion_tokens: 1499,
      total_tokens: 14_428,
      prompt_tokens_details: { text_tokens: 10_120, audio_tokens: 0, image_tokens: 0, cached_tokens: 128 },
      completion_tokens_details: { reasoning_tokens: 2809, audio_tokens: 0 },
      num_sources_used: 0,
    },
    read: { promptTokens: 10_120, completionTokens: 4308, cachedTokens: 128 },
  },
  {
    vendor: 'xAI on Vertex, with reasoning and no total',
    usage: { prompt_tokens: 12, completion_tokens: 2, completion_tokens_details: { reasoning_tokens: 317 } },
    read: { promptTokens: 12, completionTokens: 319 },
  },
  {
    vendor: 'Gemini, whose thoughts are only in the total',
    usage: { prompt_tokens: 20, completion_tokens: 10, total_tokens: 370 },
    chunks: [
      chunk({ usage: { prompt_tokens: 20, completion_tokens: 0, total_tokens: 240 } }),
      chunk({ usage: { prompt_tokens: 20, completion_tokens: 10, total_tokens: 370 } }),
    ],
    read: { promptTokens: 20, completionTokens: 350 },
  },
  {
    vendor: 'Gemini, which names thoughts and wrote nothing else',
    usage: {
      prompt_tokens: 21,
      completion_tokens: 0,
      total_tokens: 81,
      completion_tokens_details: { reasoning_tokens: 60 },
    },
    read: { promptTokens: 21, completionTokens: 60 },
  },
  {
    vendor: 'Anthropic, on its own compatible endpoint',
    usage: plain,
    read: { promptTokens: 14, completionTokens: 7 },
  },
  {
    vendor: 'Anthropic, translated with the cache among the prompt',
    usage: {
      prompt_tokens: 2000,
      completion_tokens: 30,
      total_tokens: 2030,
      prompt_tokens_details: { cached_tokens: 1500, cache_creation_tokens: 400 },
      cache_read_input_tokens: 1500,
      cache_creation_input_tokens: 400,
    },
    read: { promptTokens: 2000, completionTokens: 30, cachedTokens: 1500, cacheWriteTokens: 400 },
  },
  {
    vendor: 'Anthropic, translated with the cache beside the prompt',
    usage: {
      prompt_tokens: 100,
      completion_tokens: 30,
      total_tokens: 2030,
      prompt_tokens_details: { cached_tokens: 0 },
      cache_read_input_tokens: 1500,
      cache_creation_input_tokens: 400,
    },
    read: { promptTokens: 2000, completionTokens: 30, cachedTokens: 1500, cacheWriteTokens: 400 },
  },
  {
    vendor: 'DeepSeek',
    usage: {
      prompt_tokens: 1000,
      completion_tokens: 300,
      total_tokens: 1300,
      completion_tokens_details: { reasoning_tokens: 250 },
      prompt_cache_hit_tokens: 960,
      prompt_cache_miss_tokens: 40,
    },
    read: { promptTokens: 1000, completionTokens: 300, cachedTokens: 960 },
  },
  {
    vendor: 'Kimi, whose cached tokens are at the top and whose stream has it in the choice',
    usage: kimi,
    chunks: [chunk(), chunk({ choices: [{ ...end, usage: kimi }] })],
    read: { promptTokens: 1000, completionTokens: 13, cachedTokens: 900 },
  },
  {
    vendor: 'Groq, whose stream has it under x_groq',
    usage: groq,
    chunks: [
      chunk({ x_groq: { id: 'req_01' } }),
      chunk({ choices: [end], x_groq: { id: 'req_01', usage: groq } }),
    ],
    read: { promptTokens: 23, completionTokens: 19 },
  },
  {
    vendor: 'Mistral, whose last chunk of text has it',
    usage: {
      prompt_tokens: 1013,
      total_tokens: 1043,
      completion_tokens: 30,
      prompt_audio_seconds: null,
      num_cached_tokens: 1008,
    },
    chunks: [
      chunk(),
      chunk({
        choices: [end],
        usage: {
          prompt_tokens: 1013,
          total_tokens: 1043,
          completion_tokens: 30,
          prompt_tokens_details: { cached_tokens: 1008 },
        },
      }),
    ],
    read: { promptTokens: 1013, completionTokens: 30, cachedTokens: 1008 },
  },
  {
    vendor: 'OpenRouter, whose last chunk has an empty choice',
    usage: {
      prompt_tokens: 194,
      completion_tokens: 2,
      total_tokens: 196,
      cost: 0.95,
      is_byok: false,
      prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 100, audio_tokens: 0 },
      cost_details: { upstream_inference_cost: null },
      completion_tokens_details: { reasoning_tokens: 0, image_tokens: 0 },
    },
    read: { promptTokens: 194, completionTokens: 2, cachedTokens: 0, cacheWriteTokens: 100 },
  },
  {
    vendor: 'Qwen',
    usage: {
      prompt_tokens: 300,
      completion_tokens: 20,
      total_tokens: 320,
      prompt_tokens_details: { cached_tokens: 0, cache_type: 'ephemeral', cache_creation_input_tokens: 250 },
    },
    read: { promptTokens: 300, completionTokens: 20, cachedTokens: 0, cacheWriteTokens: 250 },
  },
  {
    vendor: 'Perplexity, whose sources and reasoning are beside the two counts and not in the total',
    usage: {
      prompt_tokens: 33,
      completion_tokens: 7163,
      total_tokens: 7196,
      citation_tokens: 20_016,
      num_search_queries: 18,
      reasoning_tokens: 73_994,
      cost: { total_cost: 0.41 },
    },
    read: { promptTokens: 20_049, completionTokens: 81_157 },
  },
  {
    vendor: 'Perplexity, if its total counted the sources',
    usage: { prompt_tokens: 33, completion_tokens: 500, total_tokens: 20_549, citation_tokens: 20_016 },
    read: { promptTokens: 20_049, completionTokens: 500 },
  },
  {
    vendor: 'Perplexity, whose other models report no sources',
    usage: { prompt_tokens: 33, completion_tokens: 500, total_tokens: 533, search_context_size: 'low' },
    read: { promptTokens: 33, completionTokens: 500 },
  },
  {
    vendor: 'SGLang, whose reasoning is at the top and among the completion',
    usage: {
      prompt_tokens: 40,
      completion_tokens: 300,
      total_tokens: 340,
      prompt_tokens_details: { cached_tokens: 32 },
      reasoning_tokens: 150,
    },
    read: { promptTokens: 40, completionTokens: 300, cachedTokens: 32 },
  },
  {
    vendor: 'vLLM, which counts in every chunk',
    usage: { ...plain, prompt_tokens_details: null },
    chunks: [
      chunk({ usage: { prompt_tokens: 14, completion_tokens: 1, total_tokens: 15 } }),
      chunk({ usage: { prompt_tokens: 14, completion_tokens: 6, total_tokens: 20 } }),
      chunk({ choices: [], usage: plain }),
    ],
    read: { promptTokens: 14, completionTokens: 7 },
  },
  {
    vendor: 'llama.cpp, with its timings',
    usage: plain,
    chunks: [
      chunk(),
      chunk({
        choices: [],
        usage: plain,
        timings: { cache_n: 6, prompt_n: 8, predicted_n: 7, prompt_ms: 30.9 },
      }),
    ],
    read: { promptTokens: 14, completionTokens: 7 },
  },
  {
    vendor: 'llama.cpp, only with its timings',
    usage: undefined,
    chunks: [chunk(), chunk({ choices: [end], timings: { cache_n: 6, prompt_n: 8, predicted_n: 7 } })],
    read: undefined,
  },
  { vendor: 'Ollama', usage: plain, read: { promptTokens: 14, completionTokens: 7 } },
  {
    vendor: 'a server that counts from zero on',
    usage: plain,
    chunks: [
      chunk({ usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }),
      chunk({ usage: plain }),
      chunk({ choices: [], usage: null }),
    ],
    read: { promptTokens: 14, completionTokens: 7 },
  },
  { vendor: 'a server that reports none', usage: undefined, chunks: [chunk()], read: undefined },
  { vendor: 'a server that reports an empty one', usage: {}, read: undefined },
];

describe('the usage of a chat answer', () => {
  test.each(forms)('is read in the form of $vendor, whole', ({ usage, read }) => {
    const reader = createChatReader();
    const message = { role: 'assistant', content: 'ab' };
    reader.readBody(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage }));
    expect(reader.progress.usage).toEqual(read);
    expect(reader.progress.isUsageMalformed).toBeUndefined();
  });

  test.each(forms)('is read in the form of $vendor, streamed', ({ usage, chunks, read }) => {
    const reader = createChatReader();
    for (const each of chunks ?? [chunk(), chunk({ choices: [end] }), chunk({ choices: [], usage })])
      expect(reader.readChunk(JSON.stringify(each)).kind).toBe('part');
    expect(reader.progress.usage).toEqual(read);
    expect(reader.progress.isUsageMalformed).toBeUndefined();
  });

  test('in a choice counts for an answer of one choice alone', () => {
    const reader = createChatReader();
    for (const index of [0, 1])
      reader.readChunk(JSON.stringify({ choices: [{ ...end, index, usage: kimi }] }));
    expect(reader.progress.usage).toBeUndefined();
  });

  const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
  const read = { promptTokens: 3, completionTokens: 5 };

  test.each([
    ['a total', { total_tokens: '8' }, {}],
    ['a total below its parts', { total_tokens: 2 }, {}],
    ['cached tokens', { prompt_tokens_details: { cached_tokens: 4 } }, {}],
    [
      'written tokens',
      { prompt_tokens_details: { cached_tokens: 2, cache_write_tokens: 2 } },
      { cachedTokens: 2 },
    ],
    ['reasoning', { completion_tokens_details: { reasoning_tokens: -1 } }, {}],
    ['details', { prompt_tokens_details: 7, completion_tokens_details: [] }, {}],
  ])('is read without %s that cannot be true', (_, change, more) => {
    expect(readUsage({ ...usage, ...change })).toEqual({ kind: 'counted', usage: { ...read, ...more } });
  });

  test.each([[5.5], ['5'], [-1], [2 ** 53]])('is malformed with a count of %j', (completion_tokens) => {
    expect(readUsage({ ...usage, completion_tokens })).toEqual({ kind: 'malformed' });
  });

  test.each([[{ prompt_tokens: 3 }], [{}], [[]], [null], [undefined], [7]])('is none in %j', (value) => {
    expect(readUsage(value)).toEqual({ kind: 'none' });
  });

  test('is what was used, wherever a vendor counts the reasoning and the cache', () => {
    const tokens = fc.integer({ min: 1, max: 1_000_000 });
    fc.assert(
      fc.property(
        tokens,
        tokens,
        tokens,
        tokens,
        fc.boolean(),
        (fresh, cached, text, reasoning, isBeside) => {
          const prompt = fresh + cached;
          const completion = text + reasoning;
          const given = readUsage({
            prompt_tokens: prompt,
            completion_tokens: isBeside ? text : completion,
            total_tokens: prompt + completion,
            prompt_tokens_details: { cached_tokens: cached },
            completion_tokens_details: { reasoning_tokens: reasoning },
          });
          const counts = { promptTokens: prompt, completionTokens: completion, cachedTokens: cached };
          expect(given).toEqual({ kind: 'counted', usage: counts });
        },
      ),
      propertyRuns(200),
    );
  });

  test('is never less than the two counts, nor more than all that is reported', () => {
    const count = fc.oneof(fc.maxSafeNat(), fc.nat(2000));
    const record = fc.record({
      prompt_tokens: count,
      completion_tokens: count,
      total_tokens: count,
      cached_tokens: count,
      cache_creation_input_tokens: count,
      reasoning_tokens: count,
      citation_tokens: count,
    });
    fc.assert(
      fc.property(record, (given) => {
        const reading = readUsage(given);
        if (reading.kind !== 'counted') throw new Error('it is not read');
        const { promptTokens, completionTokens, cachedTokens = 0, cacheWriteTokens = 0 } = reading.usage;
        expect(promptTokens).toBeGreaterThanOrEqual(given.prompt_tokens);
        expect(completionTokens).toBeGreaterThanOrEqual(given.completion_tokens);
        expect(BigInt(cachedTokens) + BigInt(cacheWriteTokens)).toBeLessThanOrEqual(BigInt(promptTokens));
        const { prompt_tokens, completion_tokens, reasoning_tokens, citation_tokens } = given;
        const parts = [prompt_tokens, completion_tokens, reasoning_tokens, citation_tokens].map(BigInt);
        const sum = parts.reduce((one, other) => one + other, 0n);
        const above = BigInt(given.total_tokens) + BigInt(citation_tokens);
        const most = sum > above ? sum : above;
        expect(BigInt(promptTokens) + BigInt(completionTokens)).toBeLessThanOrEqual(most);
        expect([promptTokens, completionTokens].every(Number.isSafeInteger)).toBe(true);
      }),
      propertyRuns(500),
    );
  });
});

import { describe, expect, test } from 'vitest';
import { unpricedParameter } from '../../../src/chat/rules/unpriced-parameter.ts';
import { chatRequest } from './support.ts';

const text = { type: 'text', text: 'what is this?' };
const user = { role: 'user', content: 'hi' };
const saying = (extra: object) => ({ messages: [user, { ...user, ...extra }] });
const withPart = (part: object) => saying({ content: [text, part] });
/** What is refused of a request to a model with prices of its cache. */
const refusedWithCache = (extra: object) => unpricedParameter(chatRequest(extra), [], true)?.body.error.param;
const ownTool = { type: 'function', function: { name: 'f' } };

describe('a parameter that may cost more than the tokens of its model', () => {
  test.each([
    // other models, tiers and services
    [{ models: ['another'] }, 'models'],
    [{ route: 'fallback' }, 'route'],
    [{ provider: { order: ['x'] } }, 'provider'],
    [{ fallbacks: ['another'] }, 'fallbacks'],
    [{ preset: 'mine' }, 'preset'],
    [{ plugins: [{ id: 'web' }] }, 'plugins'],
    [{ transforms: ['middle-out'] }, 'transforms'],
    [{ service_tier: 'priority' }, 'service_tier'],
    [{ service_tier: 'flex' }, 'service_tier'],
    [{ web_search_options: {} }, 'web_search_options'],
    [{ search_parameters: { mode: 'on' } }, 'search_parameters'],
    [{ enable_search: true }, 'enable_search'],
    [{ store: true }, 'store'],
    // tokens beyond the limit, or of another price
    [{ max_output_tokens: 9 }, 'max_output_tokens'],
    [{ max_new_tokens: 9 }, 'max_new_tokens'],
    [{ Max_Tokens: 9 }, 'Max_Tokens'],
    [{ thinking: { type: 'enabled', budget_tokens: 9 } }, 'thinking'],
    [{ reasoning: { max_tokens: 9 } }, 'reasoning'],
    [{ modalities: ['text', 'audio'] }, 'modalities'],
    [{ modalities: 'audio' }, 'modalities'],
    [{ audio: { voice: 'alloy' } }, 'audio'],
    [{ prediction: { type: 'content', content: 'x' } }, 'prediction'],
    [{ best_of: 5 }, 'best_of'],
    [{ use_beam_search: true }, 'use_beam_search'],
    // what is not in the request, or hides in it
    [{ previous_response_id: 'resp_1' }, 'previous_response_id'],
    [{ conversation: 'conv_1' }, 'conversation'],
    [{ cached_content: 'c' }, 'cached_content'],
    [{ cache_control: { type: 'ephemeral' } }, 'cache_control'],
    [{ chat_template: '{{ messages }}' }, 'chat_template'],
    [{ chat_template_kwargs: { chat_template: '{{ x }}' } }, 'chat_template_kwargs'],
    [{ extra_body: {} }, 'extra_body'],
    [{ response_format: { type: 'grammar' } }, 'response_format'],
    [{ metadata: { tags: ['paid'] } }, 'metadata'],
    [{ user: { fallbacks: [] } }, 'user'],
    [{ stop: [{ models: [] }] }, 'stop'],
    [{ stream_options: { include_usage: true, provider: 'x' } }, 'stream_options'],
    // parameters of a proxy
    [{ api_base: 'https://elsewhere.example' }, 'api_base'],
    [{ api_key: 'k' }, 'api_key'],
    [{ mock_response: 'x' }, 'mock_response'],
    [{ priority: 0 }, 'priority'],
    [{ num_retries: 9 }, 'num_retries'],
    // names of Object.prototype are not parameters
    [{ toString: 'x' }, 'toString'],
    [{ constructor: 'x' }, 'constructor'],
    // tools of the upstream
    [{ tools: [ownTool, { type: 'web_search' }] }, 'tools'],
    [{ tools: [{ ...ownTool, cache_control: { type: 'ephemeral' } }] }, 'tools'],
    [{ tools: [{ type: 'function', function: { name: 'f', cache_control: {} } }] }, 'tools'],
    [{ tools: [{ googleSearch: {} }] }, 'tools'],
    [{ tools: 'all' }, 'tools'],
    [{ tool_choice: { type: 'web_search_preview' } }, 'tool_choice'],
    [{ functions: [{ name: 'f', cache_control: {} }] }, 'functions'],
    // messages
    [saying({ audio: { id: 'audio_1' } }), 'messages[1].audio'],
    [saying({ cache_control: { type: 'ephemeral' } }), 'messages[1].cache_control'],
    [saying({ images: ['base64'] }), 'messages[1].images'],
    [saying({ tool_calls: [{ ...ownTool, cache_control: {} }] }), 'messages[1].tool_calls'],
    [saying({ annotations: [{ type: 'file', file: {} }] }), 'messages[1].annotations'],
    [saying({ reasoning_details: [{ content: [{ type: 'image_url' }] }] }), 'messages[1].reasoning_details'],
    [withPart({ ...text, cache_control: { type: 'ephemeral' } }), 'messages[1].content[1]'],
    [withPart({ type: 'text', text: [{ type: 'image_url' }] }), 'messages[1].content[1]'],
    ...['image_url', 'input_audio', 'file', 'video_url', 'toString'].map((type) => [
      withPart({ type }),
      'messages[1].content[1]',
    ]),
  ] as [object, string][])('in %j is refused, and %s is named', (extra, param) => {
    const error = unpricedParameter(chatRequest(extra));
    expect(error).toMatchObject({ status: 400, body: { error: { param, code: 'unsupported_parameter' } } });
    expect(error?.body.error.message).toContain(param);
  });

  test.each([
    [{ ['a<b>\n"c".d-e_f ' + 'x'.repeat(99)]: 1 }, `abc.d-e_f${'x'.repeat(55)}`],
    [{ '\u0000 ü': 1 }, null],
    [saying({ 'bad\nname': 1 }), 'messages[1].badname'],
  ])('in %j is named by the plain characters of its name', (extra, param) => {
    expect(unpricedParameter(chatRequest(extra))?.body.error.param).toBe(param);
  });

  test('is not a cache_control of a part or a tool where the price of writing to a cache is known', () => {
    const cached = { cache_control: { type: 'ephemeral' } };
    const hour = { cache_control: { type: 'ephemeral', ttl: '1h' } };
    const named = (mark: object) => ({ tools: [{ ...ownTool, function: { name: 'f', ...mark } }] });
    for (const extra of [
      withPart({ ...text, ...cached }),
      { tools: [{ ...ownTool, ...cached }] },
      named(cached),
    ]) {
      expect(refusedWithCache(extra)).toBeUndefined();
      expect(unpricedParameter(chatRequest(extra))?.status).toBe(400);
    }
    // another price
    expect(refusedWithCache(withPart({ ...text, ...hour }))).toBe('messages[1].content[1]');
    expect(refusedWithCache({ tools: [{ ...ownTool, ...hour }] })).toBe('tools');
  });

  test('is found in an own __proto__ too', () => {
    const request = chatRequest({});
    const body = JSON.parse(`{"__proto__":{"models":["another"]}}`) as object;
    expect(unpricedParameter({ ...request, body: body as typeof request.body })).toMatchObject({
      body: { error: { param: '__proto__' } },
    });
  });

  test.each([
    {},
    {
      web_search_options: null,
      audio: null,
      prediction: null,
      service_tier: null,
      tools: null,
      models: null,
    },
    {
      tools: [
        { type: 'function', function: { name: 'f', description: 'd', strict: true, parameters: { x: {} } } },
        { type: 'custom', custom: { name: 'g', format: { type: 'text' } } },
      ],
      tool_choice: { type: 'function', function: { name: 'f' } },
    },
    { tools: [], functions: [{ name: 'f' }], tool_choice: 'auto', parallel_tool_calls: true },
    { modalities: ['text'], service_tier: 'auto', store: false, metadata: { run: 'x' } },
    { service_tier: 'default', function_call: { name: 'f' }, stream: true, max_tokens: 5 },
    { logprobs: true, top_logprobs: 20, n: 3, seed: 1, stop: ['x'], logit_bias: { 1: 2 }, temperature: 0 },
    { response_format: { type: 'json_schema', json_schema: { schema: {} } }, reasoning_effort: 'high' },
    { user: 'u', safety_identifier: 's', prompt_cache_key: 'k', verbosity: 'low' },
    { top_k: 40, min_p: 0.1, repetition_penalty: 1.1, chat_template_kwargs: { enable_thinking: false } },
    { stream_options: { include_usage: true, include_obfuscation: false } },
    {
      messages: [
        { role: 'developer', name: 'n', content: [text, { type: 'refusal', refusal: 'no' }] },
        {
          role: 'assistant',
          content: null,
          audio: null,
          refusal: null,
          annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example', start_index: 1 } }],
          reasoning: 'r',
          reasoning_content: 'r',
          reasoning_details: [{ type: 'reasoning.text', text: 'r', index: 0 }],
          tool_calls: [
            {
              id: 'c',
              index: 0,
              type: 'function',
              function: { name: 'f', arguments: '{}' },
              extra_content: { google: { thought_signature: 's' } },
            },
            { id: 'd', type: 'custom', custom: { name: 'g', input: 'x' } },
          ],
        },
        { role: 'assistant', function_call: { name: 'f', arguments: '{}' } },
        { role: 'tool', tool_call_id: 'c', content: '42' },
      ],
    },
  ])('is not found in %j', (extra) => {
    expect(unpricedParameter(chatRequest(extra))).toBeUndefined();
  });

  test('is accepted where the operator allows it', () => {
    const request = chatRequest({ thinking: { type: 'enabled' }, service_tier: 'flex' });
    expect(unpricedParameter(request, ['thinking', 'service_tier'])).toBeUndefined();
    expect(unpricedParameter(request, ['thinking'])?.body.error.param).toBe('service_tier');
  });
});

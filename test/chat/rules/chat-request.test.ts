import { describe, expect, test } from 'vitest';
import {
  type ChatRequest,
  readChatRequest,
  rewriteForUpstream,
} from '../../../src/chat/rules/chat-request.ts';
import type { OpenAiError } from '../../../src/base/errors/openai-error.ts';
import { parseJsonObject } from '../../../src/base/values/exact-json.ts';
import { chatBody, chatRequest, fastestMs } from './support.ts';

function errorOf(body: Buffer): OpenAiError['body']['error'] {
  const read = readChatRequest(body);
  if (!('invalid' in read)) throw new Error('it was read');
  expect(read.invalid.status).toBe(400);
  return read.invalid.body.error;
}

/** The body sent to the upstream for a good body with more parameters. */
function rewritten(extra: object, change: Partial<Parameters<typeof rewriteForUpstream>[1]> = {}): unknown {
  const whole = { upstreamModel: 'theirs', forceUsage: false, ...change };
  return JSON.parse(rewriteForUpstream(chatRequest(extra), whole));
}

describe('a chat request', () => {
  test('of a model and a message has every default', () => {
    expect(chatRequest({})).toEqual({
      model: 'some-model',
      messages: [{ role: 'user', content: 'hello' }],
      stream: false,
      wantsUsage: false,
      maxTokens: undefined,
      n: 1,
      body: { model: 'some-model', messages: [{ role: 'user', content: 'hello' }] },
    });
  });

  test.each([
    [
      { stream: true, stream_options: { include_usage: true } },
      { stream: true, wantsUsage: true },
    ],
    [
      { stream: true, stream_options: {} },
      { stream: true, wantsUsage: false },
    ],
    [
      { max_tokens: 7, n: 128 },
      { maxTokens: 7, n: 128 },
    ],
    [{ max_completion_tokens: 8 }, { maxTokens: 8 }],
    [{ max_tokens: 8, max_completion_tokens: 8 }, { maxTokens: 8 }],
    [{ max_tokens: null, max_completion_tokens: 9 }, { maxTokens: 9 }],
    [
      { stream: null, stream_options: null, max_tokens: null, n: null },
      { stream: false, n: 1 },
    ],
  ] satisfies [object, Partial<ChatRequest>][])('%j is understood', (extra, expected) => {
    expect(chatRequest(extra)).toMatchObject(expected);
  });

  test('may hold messages of every kind that clients send', () => {
    const messages = [
      { role: 'developer', content: [{ type: 'text', text: 'be brief' }] },
      { role: 'user', name: 'ann', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: {} }] },
      { role: 'assistant', refusal: 'no' },
      { role: 'tool', tool_call_id: 'c', content: '42' },
    ];
    expect(chatRequest({ messages }).messages).toEqual(messages);
  });

  test.each([
    [{ model: undefined }, 'missing_required_parameter', 'model', 'model is missing.'],
    [{ messages: undefined }, 'missing_required_parameter', 'messages', 'messages is missing.'],
    [{ model: 4 }, 'invalid_type', 'model', 'model must be a string.'],
    [{ model: '' }, 'invalid_value', 'model', 'model must not be empty.'],
    [{ messages: 'hello' }, 'invalid_type', 'messages', 'messages must be an array.'],
    [{ messages: [] }, 'invalid_value', 'messages', 'messages must hold a message.'],
    [{ messages: ['hi'] }, 'invalid_type', 'messages[0]', 'messages[0] must be an object.'],
    [
      { messages: [{ role: 'user', content: 'a' }, { content: 'b' }] },
      'missing_required_parameter',
      'messages[1].role',
      'messages[1].role is missing.',
    ],
    [
      { messages: [{ role: 'user', content: 4 }] },
      'invalid_type',
      'messages[0].content',
      'messages[0].content must be a string or an array of parts.',
    ],
    [
      { messages: [{ role: 'user', content: [{ text: 'no type' }] }] },
      'invalid_type',
      'messages[0].content',
      'messages[0].content must be a string or an array of parts.',
    ],
    [{ stream: 'yes' }, 'invalid_type', 'stream', 'stream must be true or false.'],
    [{ stream_options: [] }, 'invalid_type', 'stream_options', 'stream_options must be an object.'],
    [
      { stream_options: { include_usage: 1 } },
      'invalid_type',
      'stream_options.include_usage',
      'stream_options.include_usage must be true or false.',
    ],
    [{ max_tokens: 0 }, 'invalid_value', 'max_tokens', 'max_tokens must be a whole number above 0.'],
    [{ max_tokens: 1.5 }, 'invalid_type', 'max_tokens', 'max_tokens must be a whole number above 0.'],
    [{ max_tokens: '5' }, 'invalid_type', 'max_tokens', 'max_tokens must be a whole number above 0.'],
    [
      { max_completion_tokens: -1 },
      'invalid_value',
      'max_completion_tokens',
      'max_completion_tokens must be a whole number above 0.',
    ],
    [
      { max_tokens: 1, max_completion_tokens: 2 },
      'invalid_parameter_combination',
      'max_tokens',
      'max_tokens differs from max_completion_tokens: send one.',
    ],
    [{ n: 0 }, 'invalid_value', 'n', 'n must be a whole number from 1 to 128.'],
    [{ n: 129 }, 'invalid_value', 'n', 'n must be a whole number from 1 to 128.'],
    [
      { n: 2, max_tokens: Number.MAX_SAFE_INTEGER },
      'invalid_value',
      'max_tokens',
      'max_tokens is too large.',
    ],
    [
      { n: 2, max_completion_tokens: Number.MAX_SAFE_INTEGER },
      'invalid_value',
      'max_completion_tokens',
      'max_completion_tokens is too large.',
    ],
  ] satisfies [object, string, string, string][])('with %j is refused', (extra, code, param, text) => {
    expect(errorOf(chatBody(extra))).toEqual({ type: 'invalid_request_error', code, param, message: text });
  });

  test('is refused if it is too long', () => {
    expect(errorOf(chatBody({ model: 'm'.repeat(201) }))).toMatchObject({ param: 'model' });
    const messages = Array.from({ length: 10_001 }, () => ({ role: 'user', content: '' }));
    expect(errorOf(chatBody({ messages }))).toMatchObject({ param: 'messages', code: 'invalid_value' });
    expect(chatRequest({ messages: messages.slice(1) }).messages).toHaveLength(10_000);
  });

  test.each(['', 'hello', '[]', '"x"', '{"model":"m"'])('is not read from %j', (text) => {
    expect(errorOf(Buffer.from(text))).toMatchObject({ code: 'invalid_json', param: null });
  });

  test('is refused if it is nested too deep, before it is parsed', () => {
    const bomb = Buffer.from(`{"model":"m","messages":${'['.repeat(1_000_000)}`);
    expect(errorOf(bomb).message).toBe('The request body is nested deeper than 128 levels.');
  });

  test.each([
    ['parts', `[{"role":"user","content":[${'[],'.repeat(28_000)}[]]}]`],
    ['messages', `[${'{"content":[1,2,3,4]},'.repeat(7_000)}0]`],
  ])('of many wrong %s is refused in the time that parsing it takes', (_, messages) => {
    const body = Buffer.from(`{"model":"m","messages":${messages}}`);
    expect(errorOf(body)).toMatchObject({ code: expect.stringMatching(/invalid_type|missing/) });
    const parseMs = fastestMs(() => parseJsonObject(body));
    expect(fastestMs(() => readChatRequest(body))).toBeLessThan(10 * parseMs + 5);
  });

  test('is refused if it has too many values, before it is parsed', () => {
    const many = Buffer.from(`{"model":"m","messages":[${'0,'.repeat(5_000_000)}0]}`);
    expect(errorOf(many).message).toBe(
      'The request body holds more than 60000 values: commas, colons and opening brackets are counted.',
    );
  });

  test.each(['99999999999999999999', '1e999', '9007199254740993'])(
    'is refused with max_tokens %s, which no number keeps',
    (number) => {
      const body = Buffer.from(
        `{"model":"m","messages":[{"role":"user","content":""}],"max_tokens":${number}}`,
      );
      expect(errorOf(body)).toMatchObject({ param: 'max_tokens' });
    },
  );

  test('is never quoted in an error', () => {
    const words = { role: 7, hush: 'hush' };
    const error = errorOf(chatBody({ stream: 'hush', messages: [words], model: 'hush'.repeat(99) }));
    expect(JSON.stringify(error)).not.toContain('hush');
  });
});

describe('the request to the upstream', () => {
  const base = { model: 'theirs', messages: [{ role: 'user', content: 'hello' }] };

  test('has another name for the model, and is the same otherwise', () => {
    const extra = { tools: [{ type: 'function' }], temperature: 0.1, max_tokens: 5, stream_options: null };
    expect(rewritten(extra)).toEqual({ ...base, ...extra });
  });

  test('keeps every number to its last digit', () => {
    const seed = '"seed":9223372036854775807';
    const body = Buffer.from(`{"model":"m","messages":[{"role":"user","content":""}],${seed}}`);
    const request = readChatRequest(body);
    if ('invalid' in request) throw new Error('it was not read');
    expect(rewriteForUpstream(request, { upstreamModel: 'm', maxTokens: 1, forceUsage: false })).toContain(
      seed,
    );
  });

  test.each([
    [{}, { max_tokens: 5 }],
    [{ max_tokens: 9 }, { max_tokens: 5 }],
    [{ max_completion_tokens: 9 }, { max_completion_tokens: 5 }],
    [
      { max_tokens: null, max_completion_tokens: 9 },
      { max_tokens: null, max_completion_tokens: 5 },
    ],
    [
      { max_tokens: 9, max_completion_tokens: 9 },
      { max_tokens: 5, max_completion_tokens: 5 },
    ],
  ])('of %j has its limit under the same name', (extra, expected) => {
    expect(rewritten(extra, { maxTokens: 5 })).toEqual({ ...base, ...expected });
  });

  test.each([
    [{ stream: true }, { include_usage: true }],
    [{ stream: true, stream_options: null }, { include_usage: true }],
    [
      { stream: true, stream_options: { include_usage: false, include_obfuscation: false } },
      { include_usage: true, include_obfuscation: false },
    ],
    [{ stream: false }, undefined],
  ])('of %j asks for usage where there is a stream', (extra, options) => {
    expect(rewritten(extra, { forceUsage: true })).toEqual({
      ...base,
      ...extra,
      ...(options && { stream_options: options }),
    });
  });

  test('does not change the request of the client', () => {
    const request = chatRequest({ stream: true, stream_options: {} });
    const before = JSON.stringify(request);
    rewriteForUpstream(request, { upstreamModel: 'theirs', maxTokens: 5, forceUsage: true });
    expect(JSON.stringify(request)).toBe(before);
  });
});

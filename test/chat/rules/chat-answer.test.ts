import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createChatReader, readChatError } from '../../../src/chat/rules/chat-answer.ts';

const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
const read = { promptTokens: 3, completionTokens: 5 };
const chunk = (change: object = {}): string =>
  JSON.stringify({ choices: [{ index: 0, delta: { content: 'ab' }, finish_reason: null }], ...change });
const ended = (index: number, reason: unknown): string =>
  JSON.stringify({ choices: [{ index, delta: {}, finish_reason: reason }] });

function progressOf(...chunks: readonly string[]) {
  const reader = createChatReader();
  for (const each of chunks) reader.readChunk(each);
  return reader.progress;
}

describe('the usage of a chat answer', () => {
  test('is the last one where it is sent twice', () => {
    const second = { ...usage, completion_tokens: 6, total_tokens: 9 };
    expect(progressOf(chunk({ usage }), chunk({ usage: second })).usage?.completionTokens).toBe(6);
  });

  test.each([[null], [undefined], [{}], [{ prompt_tokens: 'many' }]])(
    'is kept when a later chunk says %j',
    (later) => {
      expect(progressOf(chunk({ usage }), chunk({ usage: later })).usage).toEqual(read);
    },
  );
});

describe('a chunk of a chat answer', () => {
  const part = { kind: 'part', isUsageOnly: false };
  const usageOnly = { kind: 'part', isUsageOnly: true };
  const malformed = { kind: 'malformed' };

  test.each([
    [chunk(), part],
    [chunk({ usage: null }), part],
    [chunk({ usage }), part],
    [chunk({ error: null }), part],
    ['{"choices":[]}', part],
    ['{"choices":null}', part],
    [JSON.stringify({ choices: [], usage }), usageOnly],
    [JSON.stringify({ choices: null, usage }), usageOnly],
    [JSON.stringify({ usage }), usageOnly],
    ['{"choices":[],"usage":null}', part],
    ['{"choices":[null]}', malformed],
    ['{"choices":"a"}', malformed],
    ['{"detail":"Internal"}', malformed],
    ['{"choices":[{"delta"', malformed],
    ['', malformed],
    ['null', malformed],
    ['[]', malformed],
    ['"a"', malformed],
    ['{"error":{"message":"no","code":429}}', { kind: 'error', error: { message: 'no', code: '429' } }],
    [chunk({ error: { message: 'no' } }), { kind: 'error', error: { message: 'no' } }],
  ])('is classified: %s', (data, expected) => {
    expect(createChatReader().readChunk(data)).toEqual(expected);
  });

  test('with any JSON never throws', () => {
    fc.assert(
      fc.property(fc.json(), fc.json(), (one, other) => {
        const reader = createChatReader();
        reader.readChunk(one);
        reader.readBody(`{"choices":[${one},{"delta":${other}}],"usage":${other}}`);
        expect(reader.progress.written.length).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});

const nested = (levels: number): string => `${'[{"a":'.repeat(levels)}"deep"${'}]'.repeat(levels)}`;

describe('a chat answer', () => {
  test('is finished when every choice that began has ended', () => {
    expect(progressOf().isFinished).toBe(false);
    expect(progressOf(chunk()).isFinished).toBe(false);
    expect(progressOf(chunk(), ended(0, 'stop')).isFinished).toBe(true);
    expect(progressOf(ended(0, 'stop'), ended(1, null)).isFinished).toBe(false);
    expect(progressOf(ended(0, 'stop'), ended(1, null), ended(1, 'length')).isFinished).toBe(true);
    expect(progressOf(ended(0, 'stop'), chunk({ choices: [], usage })).isFinished).toBe(true);
  });

  test.each([
    ['stop', 'stop'],
    ['tool_calls', 'tool_calls'],
    ['a b', 'other'],
    ['', undefined],
    [7, undefined],
  ])('finished with %j has the finish reason %j', (reason, expected) => {
    expect(progressOf(ended(0, reason)).finishReason).toBe(expected);
  });

  test('counts what was written, tool calls and reasoning too', () => {
    const delta = {
      content: 'abc',
      reasoning_content: 'de',
      tool_calls: [{ function: { name: 'f', arguments: '{}' } }, null, { function: null }],
    };
    expect(progressOf(chunk(), chunk({ choices: [{ delta }] })).written).toHaveLength(10);
  });

  test.each([
    [{ content: [{ type: 'text', text: 'part' }, 'bare'] }, 'partbare'],
    [{ function_call: { name: 'f', arguments: '{"a":1}' } }, 'f{"a":1}'],
    [{ tool_calls: [{ id: 'c', type: 'custom', index: 0, custom: { name: 'g', input: 'raw' } }] }, 'graw'],
    [{ tool_calls: [{ function: { name: 'f', arguments: { city: 'Rome' } } }] }, 'fRome'],
    [{ reasoning_details: [{ type: 'reasoning.text', id: 'r', text: 'why' }] }, 'why'],
    [{ thinking_blocks: [{ thinking: 'hm' }], refusal: 'no' }, 'hmno'],
    [{ audio: { id: 'a', transcript: 'spoken' } }, 'spoken'],
    [{ role: 'assistant', id: 'i', type: 'message', index: '0' }, ''],
    [{ type: { text: 'odd' } }, 'odd'],
    ['bare', 'bare'],
    [null, ''],
  ])('counts all that %j delivers', (message, written) => {
    expect(progressOf(chunk({ choices: [{ delta: message }] })).written).toBe(written);
    expect(progressOf(chunk({ choices: [{ message }] })).written).toBe(written);
    expect(progressOf(chunk({ choices: [{ message, delta: {} }] })).written).toBe(written);
    expect(progressOf(chunk({ choices: [{ delta: message, message }] })).written).toBe(written);
  });

  test('is read up to the deepest permitted nesting, and is malformed beyond it', () => {
    expect(progressOf(`{"choices":[{"delta":{"content":${nested(60)}}}]}`).written).toBe('deep');
    const tooDeep = `{"choices":[{"delta":{"content":${nested(20_000)}}}]}`;
    expect(createChatReader().readChunk(tooDeep)).toEqual({ kind: 'malformed' });
  });

  test('is read from one body', () => {
    const reader = createChatReader();
    const message = { role: 'assistant', content: 'four' };
    const body = { choices: [{ index: 0, message, finish_reason: 'length' }], usage };
    expect(reader.readBody(JSON.stringify(body))).toEqual({ kind: 'part', isUsageOnly: false });
    expect(reader.progress).toEqual({
      usage: read,
      finishReason: 'length',
      isFinished: true,
      written: 'four',
    });
  });

  test.each([
    '{"choices":[]}',
    '{"choices":null}',
    JSON.stringify({ usage }),
    '{"choices":[{"message',
    '<html>',
    '',
  ])('is not in the body %s', (body) => {
    expect(createChatReader().readBody(body)).toEqual({ kind: 'malformed' });
  });
});

describe('an error of an upstream', () => {
  test.each([
    [
      { error: { message: 'm', type: 't', param: 'p', code: 'c' } },
      { message: 'm', type: 't', param: 'p', code: 'c' },
    ],
    [{ error: { message: 'm', type: null, param: null, code: null } }, { message: 'm' }],
    [{ error: { code: 500 } }, { message: '', code: '500' }],
    [{ error: 'sentence' }, { message: 'sentence' }],
    [
      { object: 'error', message: 'm', code: 400 },
      { message: 'm', code: '400' },
    ],
    [{ error: null }, undefined],
    [{ message: 'm' }, undefined],
    ['error', undefined],
    [null, undefined],
  ])('is read from %j', (value, expected) => {
    expect(readChatError(value)).toEqual(expected);
  });

  test('is cut to one line of well-formed text', () => {
    const error = readChatError({
      error: { message: `a\r\n\u0000b${'\u{1F600}'.repeat(2000)}`, code: 'c'.repeat(300) },
    });
    expect(error?.message.startsWith('a b')).toBe(true);
    expect(error?.message.length).toBe(2000);
    expect(error?.message.isWellFormed()).toBe(true);
    expect(error?.code).toHaveLength(100);
  });
});

test('keeps a bounded part of the text of an endless stream', () => {
  const reader = createChatReader();
  const long = JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(1_000_000) } }] });
  for (let at = 0; at < 40; at++) reader.readChunk(long);
  expect(reader.progress.written.length).toBeLessThan(18_000_000);
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { promptTokensBound } from '../../../src/chat/rules/prompt-bound.ts';
import { chatRequest, fastestMs } from './support.ts';

const nothing = promptTokensBound(chatRequest({ messages: [{ role: 'user', content: '' }] }));
const boundOf = (content: unknown): number =>
  promptTokensBound(chatRequest({ messages: [{ role: 'user', content }] })) - nothing;

/** Texts of every script, with what grows when it is normalized or escaped. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.string({
    unit: fc.constantFrom('\ufdfa', '\u0958', '\ufb2c', '\u{1d160}', 'ﬁ', '<', '"', '\n', '漢', '😀'),
  }),
);
const anySchema = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 8 }));

/** The tokenizer that is worst of all: a token a byte, but for runs of sixteen blanks. */
const worstTokens = (text: string): number => Buffer.byteLength(text.replaceAll(/ {1,16}/g, ' '));
const escaped = (text: string): string =>
  text.replaceAll(/[^ -~]|[<>&']/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

describe('the bound on the tokens of a prompt', () => {
  test('is the bytes of its text, and what templates may add', () => {
    expect(boundOf('hello')).toBe(5);
    expect(boundOf('héllo')).toBe(6);
    expect(boundOf('漢字')).toBe(6);
    expect(boundOf('😀')).toBe(4);
    expect(nothing).toBeGreaterThan(1_024);
    expect(nothing).toBeLessThan(1_200);
  });

  test('is never below the bytes of a text, in whichever normal form it is read', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        for (const form of [text, text.normalize('NFC'), text.normalize('NFKC')])
          expect(boundOf(text)).toBeGreaterThanOrEqual(Buffer.byteLength(form));
      }),
    );
  });

  test('holds beyond the piece in which normal forms are looked at', () => {
    const text = 'e\u0301\ufdfa'.repeat(50_000);
    for (const form of ['NFC', 'NFKC'] as const)
      expect(boundOf(text)).toBeGreaterThanOrEqual(Buffer.byteLength(text.normalize(form)));
  });

  test.each(['\u0301\u0323', '\uff9e\u0301', '\u0344\u0f73'])('holds for %j on one character', (marks) => {
    const text = `é${marks.repeat(1_000)}한`;
    for (const form of ['NFC', 'NFKC'] as const)
      expect(boundOf(text)).toBeGreaterThanOrEqual(Buffer.byteLength(text.normalize(form)));
  });

  // normalizing this many marks would take minutes
  test('is computed in time for millions of marks on one character', () => {
    const text = `a${'\u0301\u0323'.repeat(2_500_000)}`;
    expect(boundOf(text)).toBeGreaterThanOrEqual(Buffer.byteLength(text));
  });

  test.each(['a\u0344\u0344\u0344\u0344\u0344\u0344\u0344', 'a\u0301\u0302', '\ufdfa', '각'])(
    'of tens of millions of bytes of %j takes time in proportion to their number, and less where its model reads less',
    (unit) => {
      const requestOf = (bytes: number) =>
        chatRequest({
          messages: [{ role: 'user', content: unit.repeat(bytes / Buffer.byteLength(unit)) }],
        });
      const [whole, quarter] = [requestOf(32_000_000), requestOf(8_000_000)];
      const wholeMs = fastestMs(() => promptTokensBound(whole));
      // four times as long, not sixteen times
      expect(wholeMs).toBeLessThan(10 * fastestMs(() => promptTokensBound(quarter)));
      expect(fastestMs(() => promptTokensBound(whole, 131_072))).toBeLessThan(wholeMs / 2);
      expect(promptTokensBound(whole, 131_072)).toBeGreaterThanOrEqual(131_072);
    },
  );

  test('is the same up to where counting may stop', () => {
    fc.assert(
      fc.property(anyText, anySchema, fc.nat(3_000), (text, parameters, enough) => {
        const tools = [{ type: 'function', function: { name: 'f', parameters } }];
        const request = chatRequest({ messages: [{ role: 'user', content: text }], tools });
        const whole = promptTokensBound(request);
        expect(Math.min(promptTokensBound(request, enough), enough)).toBe(Math.min(whole, enough));
      }),
    );
  });

  test('is never below the bytes of a tool, however a template prints it', () => {
    fc.assert(
      fc.property(anySchema, (parameters) => {
        const tools = [{ type: 'function', function: { name: 'f', parameters } }];
        const bound = promptTokensBound(chatRequest({ tools }));
        for (const indent of [0, 2, 4]) {
          const printed = JSON.stringify(tools, null, indent);
          expect(bound).toBeGreaterThanOrEqual(worstTokens(printed));
          expect(bound).toBeGreaterThanOrEqual(worstTokens(escaped(printed)));
        }
      }),
    );
  });

  test('holds for a tool that is all indentation', () => {
    let parameters: unknown = [1, 1, 1, 1, 1, 1, 1, 1];
    for (let depth = 0; depth < 100; depth += 1) parameters = [parameters, 1];
    const tools = [{ type: 'function', parameters }];
    const bound = promptTokensBound(chatRequest({ tools })) - nothing;
    expect(bound).toBeGreaterThanOrEqual(worstTokens(JSON.stringify(tools, null, 4)));
  });

  test('counts all that a message holds, not its content alone', () => {
    const long = 'x'.repeat(5_000);
    for (const message of [
      { role: 'assistant', content: null, tool_calls: [{ function: { name: 'f', arguments: long } }] },
      { role: 'user', name: long, content: '' },
      { role: 'assistant', content: [{ type: 'refusal', refusal: long }] },
      { role: 'user', content: [{ type: 'text', text: long }] },
      { role: 'assistant', content: '', reasoning_content: long },
      { role: long },
    ])
      expect(promptTokensBound(chatRequest({ messages: [message] }))).toBeGreaterThan(6_000);
  });

  test.each(['functions', 'response_format', 'documents', 'guided_json'])('counts %s', (param) => {
    const bound = promptTokensBound(chatRequest({ [param]: [{ text: 'x'.repeat(5_000) }] }));
    expect(bound).toBeGreaterThan(6_000);
  });

  test('grows with every message, even an empty one', () => {
    const messages = Array.from({ length: 100 }, () => ({ role: 'user', content: '' }));
    expect(promptTokensBound(chatRequest({ messages }))).toBeGreaterThan(nothing + 99 * 30);
  });
});

import fc from 'fast-check';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, test } from 'vitest';
import { promptTokensBound } from '../../../src/chat/rules/prompt-bound.ts';
import { countTokens, estimateUsage, samplePrompt } from '../../../src/chat/rules/token-count.ts';
import { propertyRuns } from '../../support/property-runs.ts';
import { chatRequest } from './support.ts';

const sentence = 'The quick brown fox jumps over the lazy dog, and 12,345 others saw it. ';

describe('the tokens of a text', () => {
  test.each([
    ['nothing', '', 0],
    ['two words', 'Hello world', 2],
    ['what looks like a control token', '<|endoftext|>', 7],
  ])('of %s', async (_, text, tokens) => {
    expect(await countTokens(text)).toBe(tokens);
  });

  test('are those of the tokenizer, also if a long text is read in pieces', async () => {
    const text = sentence.repeat(500);
    expect(await countTokens(text)).toBe(encode(text).length);
  });

  test('are estimated from samples of a text that is too long, and end up close', async () => {
    const text = sentence.repeat(8_000);
    const ratio = (await countTokens(text)) / encode(text).length;
    expect(ratio).toBeGreaterThan(0.98);
    expect(ratio).toBeLessThan(1.02);
  });

  test.each([
    ['one very long word', 'a'],
    ['blanks', ' '],
    ['characters of several code points', '👩‍👩‍👧'],
    ['a script without blanks', '漢'],
  ])('are counted in time for %s', async (_, unit) => {
    const text = unit.repeat(Math.ceil(1_000_000 / unit.length));
    let turns = 0;
    const other = setInterval(() => (turns += 1), 1);
    const tokens = await countTokens(text);
    clearInterval(other);
    expect(tokens).toBeGreaterThan(0);
    expect(tokens).toBeLessThanOrEqual(Buffer.byteLength(text));
    // other work ran at the same time
    expect(turns).toBeGreaterThan(3);
  });
});

describe('an estimated usage', () => {
  test('is marked as one, and counts every choice', async () => {
    const usage = await estimateUsage(samplePrompt(chatRequest({})), ['Hello world', 'Hello world']);
    expect(usage).toMatchObject({ isEstimate: true, completionTokens: 5 });
    expect(usage.promptTokens).toBeGreaterThan(7);
    expect(usage.promptTokens).toBeLessThan(30);
  });

  test('counts tools, tool calls and parts', async () => {
    const plain = await estimateUsage(samplePrompt(chatRequest({})), []);
    for (const extra of [
      { tools: [{ type: 'function', function: { name: sentence } }] },
      { response_format: { type: 'json_schema', json_schema: { name: sentence } } },
      { messages: [{ role: 'user', content: [{ type: 'text', text: sentence }] }] },
      { messages: [{ role: 'assistant', tool_calls: [{ function: { arguments: sentence } }] }] },
    ]) {
      const { promptTokens } = await estimateUsage(samplePrompt(chatRequest(extra)), []);
      expect(promptTokens).toBeGreaterThan(plain.promptTokens + 10);
    }
  });

  test('needs little of a long request', async () => {
    const content = sentence.repeat(20_000);
    const prompt = samplePrompt(chatRequest({ messages: [{ role: 'user', content }] }));
    expect(prompt.text.length).toBeLessThan(content.length / 5);
    expect(prompt.units).toBeGreaterThan(content.length);
    const { promptTokens } = await estimateUsage(prompt, []);
    expect(promptTokens / encode(content).length).toBeCloseTo(1, 1);
  });

  test('of a prompt is never above its bound', async () => {
    const anyMessage = fc.record({
      role: fc.constantFrom('user', 'assistant', 'tool'),
      content: fc.string({ unit: 'binary', maxLength: 2_000 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(anyMessage, { minLength: 1, maxLength: 8 }), async (messages) => {
        const request = chatRequest({ messages });
        const { promptTokens } = await estimateUsage(samplePrompt(request), []);
        expect(promptTokens).toBeLessThanOrEqual(promptTokensBound(request));
      }),
      propertyRuns(30),
    );
  });
});

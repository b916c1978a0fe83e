import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { refusedRequestError } from '../../../src/chat/rules/refused-request.ts';

const own = "The model's server refused the request.";
const messageOf = (message: string): string => refusedRequestError({ message }).body.error.message;

describe("the upstream's message about a refused request", () => {
  test.each([
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion).",
    "Invalid 'messages[1].content': expected a string, got null.",
    'messages.1.content: Input should be a valid string',
    "Invalid schema for function 'get_account': 'type' and/or 'anyOf' is required.",
    "Unsupported value: 'temperature' does not support 0.2 with this model; e.g. use 1.0.",
    'response_format.json_schema.schema must be an object',
    'tool_calls[0].function.arguments is not JSON: line 1 column 12',
  ])('is passed on unchanged: %s', (message) => {
    expect(messageOf(message)).toBe(message);
  });

  test.each([
    ['see https://platform.example/docs/errors?x=1 for help', 'see … for help'],
    ['http://10.0.0.7:8000/v1/chat/completions refused', '… refused'],
    ['worker 10.0.0.7:8000 refused', 'worker … refused'],
    ['worker [fd00::1]:8000 refused', 'worker … refused'],
    ['worker fe80::1 refused', 'worker … refused'],
    ['host gpu-3.models.svc.cluster.local:8000 refused', 'host … refused'],
    ['host vllm-7:8000 refused, and localhost:11434', 'host … refused, and …'],
    ['models.example.com refused', '… refused'],
    ['File "/opt/vllm/serving.py", line 12, in f', 'File "…", line 12, in f'],
    ['cannot open ~/models/x.gguf', 'cannot open …'],
    ['in site-packages/vllm/entrypoints/api.py', 'in …'],
    ['at C:\\models\\x.bin now', 'at … now'],
    ['got sk-proj-abc123DEF456 here', 'got … here'],
    ['got sk-****wxyz here', 'got … here'],
    ['header Authorization: Bearer abc.def.ghi wrong', 'header Authorization: … wrong'],
    ['request 0123456789abcdef0123456789abcdef failed', 'request … failed'],
    ['ask ops@models.example now', 'ask … now'],
    ['no image at data:image/png;base64,AAAA= here', 'no image at … here'],
  ])('is passed on without hosts, paths and secrets: %s', (message, expected) => {
    expect(messageOf(message)).toBe(expected);
  });

  test.each([
    ['Your credit balance is too low to access the API.', undefined],
    ['API key not valid. Please pass a valid API key.', 'API_KEY_INVALID'],
    ['Your organization must be verified to stream this model.', 'unsupported_value'],
    ['Limit reached.', 'billing quota'],
    ['', 'x'],
    ['https://a.example/', undefined],
    ['...!', undefined],
  ])('is replaced where it is about the account or empty: %s', (message, code) => {
    expect(refusedRequestError({ message, ...(code !== undefined && { code }) }).body.error.message).toBe(
      own,
    );
  });

  test('is 400, with the names it gives where they are names', () => {
    const named = refusedRequestError({
      message: 'Too long.',
      code: 'context_length_exceeded',
      param: 'messages[0]',
    });
    expect(named).toMatchObject({
      status: 400,
      body: { error: { message: 'Too long.', code: 'context_length_exceeded', param: 'messages[0]' } },
    });
    const odd = refusedRequestError({ message: 'Too long.', code: 'see https://a.example', param: 'a b' });
    expect(odd.body.error).toMatchObject({ code: 'invalid_request', param: null });
    expect(refusedRequestError(undefined).body.error).toMatchObject({
      code: 'invalid_request',
      message: own,
    });
  });

  test('is no longer than 500 characters, and in time for any text', () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom('a', '1', '-', '_', '.', ':', '/', '\\', '@', ' ', '*'),
          maxLength: 2_000,
        }),
        (message) => {
          expect(messageOf(`x ${message}`).length).toBeLessThanOrEqual(500);
        },
      ),
    );
    for (const unit of ['a', '1', 'a.', 'a/', 'a-', ':', '1:', 'a@', '\\', 'a1', 'sk-', './', 'a:/'])
      expect(messageOf(`x ${unit.repeat(1_000)}`).length).toBeLessThanOrEqual(500);
    expect(messageOf('ab '.repeat(600))).toHaveLength(500);
  });
});

import { describe, expect, test } from 'vitest';
import { openAiError, openAiErrors, type OpenAiErrorName } from '../../../src/base/errors/openai-error.ts';

describe('an error of the routing API', () => {
  test.each([
    ['invalid_api_key', 401, 'invalid_api_key'],
    ['model_not_found', 404, 'model_not_found'],
    ['insufficient_funds', 402, 'insufficient_funds'],
    ['rate_limit_exceeded', 429, 'rate_limit_exceeded'],
    ['daily_quota_exceeded', 429, 'rate_limit_exceeded'],
    ['context_length_exceeded', 400, 'context_length_exceeded'],
    ['conflicting_credentials', 400, 'conflicting_credentials'],
    ['body_too_large', 413, 'body_too_large'],
    ['unsupported_media_type', 415, 'unsupported_media_type'],
    ['server_error', 500, 'server_error'],
    ['upstream_error', 502, 'upstream_error'],
    ['upstream_unavailable', 503, 'upstream_unavailable'],
    ['spend_replay', 409, 'nonce_replay'],
    ['ledger_unavailable', 503, 'ledger_unavailable'],
    ['upstream_timeout', 504, 'upstream_timeout'],
  ] satisfies [OpenAiErrorName, number, string][])('%s has status %d and code %s', (name, status, code) => {
    expect(openAiError(name)).toMatchObject({ status, body: { error: { code } } });
  });

  test('always has the four fields of OpenAI and no other', () => {
    for (const name of Object.keys(openAiErrors) as OpenAiErrorName[]) {
      expect({ name, ...openAiError(name).body }).toEqual({
        name,
        error: {
          message: expect.stringMatching(/^[A-Z].*\.$/),
          type: expect.stringMatching(/^[a-z_]+$/),
          param: null,
          code: expect.stringMatching(/^[a-z_]+$/),
        },
      });
    }
  });

  test('has the given parameter and message', () => {
    expect(openAiError('invalid_value', { param: 'n', message: 'n is too large.' }).body.error).toEqual({
      message: 'n is too large.',
      type: 'invalid_request_error',
      param: 'n',
      code: 'invalid_value',
    });
  });

  test('tells clients not to retry only for replays and an exhausted daily quota', () => {
    const names = Object.keys(openAiErrors) as OpenAiErrorName[];
    expect(names.filter((name) => !openAiError(name).retry)).toEqual([
      'nonce_replay',
      'spend_replay',
      'daily_quota_exceeded',
    ]);
  });
});

import { expect, test } from 'vitest';
import type { ApiKey } from '../../../src/accounts/store/api-keys.ts';
import type { ModelConfig } from '../../../src/base/config/config.ts';
import type { Caller } from '../../../src/chat/use-cases/caller.ts';
import { unknownModel } from '../../../src/chat/use-cases/unknown-model.ts';

test('an unknown model is named with at most five of those that the caller may use', () => {
  const models = new Map(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => [name, { name } as ModelConfig]));
  const message = (asked: string, allowed?: readonly string[]): string => {
    const key = { models: allowed } as ApiKey;
    const caller = { kind: 'api_key', key } as Caller;
    return unknownModel({ models }, caller, asked).body.error.message;
  };
  expect(message('vendor/x')).toBe(
    'There is no model "vendor/x". There are a, b, c, d, e and 2 more. Nothing was charged. GET /v1/models lists them.',
  );
  expect(message('<b>', ['b', 'c'])).toBe(
    'There is no model with this name. There are b, c. Nothing was charged. GET /v1/models lists them.',
  );
  expect(message('a', ['b'])).toBe(
    'This API key may not use this model. It may use b. Nothing was charged. GET /v1/models lists them.',
  );
});

import { z } from 'zod';

export const currency = z
  .string()
  .regex(/^[A-Z]{3,8}$/)
  .meta({ description: 'The currency of prices and credit.', examples: ['USD'] });

export const perMillion = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,5})(?:\.\d{1,9})?$/)
  .meta({ description: 'The price of a million tokens, as a decimal string.', examples: ['2.5'] });

export const model = z.strictObject({
  id: z.string().meta({ description: 'The `model` of a request.', examples: ['vendor/large'] }),
  object: z.literal('model'),
  created: z.int().min(0).describe('A constant: upstreams do not report it.'),
  owned_by: z.literal('tollbook'),
  free_tier: z.boolean().describe('Whether the model can be used without a key.'),
  price: z
    .strictObject({
      input: perMillion,
      output: perMillion,
      cached_input: perMillion,
      cache_write: perMillion,
      currency,
    })
    .describe(
      'All are 0 in the free tier. `cached_input` and `cache_write`: of the tokens of a prompt that its server reads from its cache or writes to it.',
    ),
  context_length: z.int().min(1).describe('The most tokens of prompt and answer together.'),
  max_output_tokens: z.int().min(1).describe('The most tokens of an answer.'),
});
export type ModelJson = z.infer<typeof model>;

export const modelList = z
  .strictObject({ object: z.literal('list'), data: z.array(model) })
  .describe('The models in the order of the configuration; with a key, only those that it may use.');

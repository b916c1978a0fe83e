import { z } from 'zod';

export const currency = z
  .string()
  .regex(/^[A-Z]{3,8}$/)
  .meta({ description: 'What prices and credit are counted in.', examples: ['USD'] });

const perMillion = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,5})(?:\.\d{1,9})?$/)
  .meta({ description: 'For a million tokens, as a decimal string.', examples: ['2.5'] });

export const model = z.strictObject({
  id: z.string().meta({ description: 'The `model` of a request.', examples: ['vendor/large'] }),
  object: z.literal('model'),
  created: z.int().min(0).meta({ description: 'Always the same: upstreams do not tell.' }),
  owned_by: z.literal('tollbook'),
  free_tier: z.boolean().meta({ description: 'For everybody, without a key.' }),
  price: z
    .strictObject({ input: perMillion, output: perMillion, currency })
    .meta({ description: 'Both are 0 in the free tier.' }),
  context_length: z.int().min(1).meta({ description: 'In tokens, prompt and answer together.' }),
  max_output_tokens: z.int().min(1).meta({ description: 'Of an answer, at most.' }),
});
export type ModelJson = z.infer<typeof model>;

export const modelList = z
  .strictObject({ object: z.literal('list'), data: z.array(model) })
  .meta({ description: 'In the order of the configuration; with a key, those that it may use.' });

import { z } from 'zod';

/** The parts of OpenAI's shapes that the gateway reads. Other fields of a body are passed on unchanged. */
const tokens = z.int().min(0);
const messageContent = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]);

export const chatRequest = z
  .looseObject({
    model: z
      .string()
      .min(1)
      .max(200)
      .meta({ description: 'A model of `GET /v1/models`.', examples: ['devnet-small'] }),
    messages: z.array(z.looseObject({ role: z.string(), content: messageContent.nullish() })).min(1),
    stream: z.boolean().nullish().describe('Whether the answer is an event stream.'),
    stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
    max_tokens: z.int().min(1).nullish(),
    max_completion_tokens: z
      .int()
      .min(1)
      .nullish()
      .describe(
        "The limit of each choice. Default: the model's longest answer if an eighth of the credit pays for it, else a shorter one.",
      ),
    n: z.int().min(1).max(128).nullish(),
  })
  .describe(
    "OpenAI's request for text, tools and response formats, with the usual samplers of open models, is passed to the model " +
      'unchanged. Other parameters, and those that may cost more than tokens, are refused with `unsupported_parameter`.',
  );

export const chatCompletion = z
  .looseObject({
    id: z.string(),
    object: z.literal('chat.completion').optional(),
    model: z.string().optional(),
    choices: z
      .array(
        z.looseObject({
          index: z.int().min(0).optional(),
          message: z.looseObject({}),
          finish_reason: z.string().nullish(),
        }),
      )
      .min(1),
    usage: z
      .looseObject({ prompt_tokens: tokens, completion_tokens: tokens, total_tokens: tokens.optional() })
      .nullish(),
  })
  .describe('The answer of the upstream, byte for byte.');

export const openAiErrorBody = z
  .strictObject({
    error: z.strictObject({
      message: z.string().describe('One sentence for a person.'),
      type: z.string(),
      param: z.string().nullable().describe('The parameter that is wrong.'),
      code: z.string(),
    }),
  })
  .describe("An error in OpenAI's format.");

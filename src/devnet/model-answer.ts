import { createHash } from 'node:crypto';
import { z } from 'zod';

const message = z.looseObject({
  role: z.string(),
  content: z
    .union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))])
    .nullish(),
});

/** As much of OpenAI's request as this model heeds. */
export const modelRequest = z.looseObject({
  model: z.string(),
  messages: z.array(message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: z.int().positive().nullish(),
  max_completion_tokens: z.int().positive().nullish(),
  tools: z.array(z.looseObject({ function: z.looseObject({ name: z.string() }).optional() })).nullish(),
});
export type ModelRequest = z.infer<typeof modelRequest>;

interface ModelUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: { readonly cached_tokens: number };
}

export interface ModelAnswer {
  readonly id: string;
  readonly model: string;
  /** In the pieces of a stream: one token each. */
  readonly pieces: readonly string[];
  /** Set when the pieces are the arguments of this tool instead of text. */
  readonly tool?: string;
  readonly finishReason: 'stop' | 'length' | 'tool_calls';
  readonly usage: ModelUsage;
}

/** The tokens of a message in addition to its text. */
const messageTokens = 4;
const createdSecs = 1_700_000_000;

/**
 * The answer to a request, always the same: the last message, given back. In it `words:7` asks for seven words
 * instead, `words:7x100` for seven of at least a hundred letters, and `call tool NAME` for a call of a tool that was offered. A token is a word; system messages are cached.
 */
export function answerOf(request: ModelRequest): ModelAnswer {
  const prompt = promptOf(request);
  const tool = offeredTool(request, /\bcall tool ([\w-]+)/.exec(prompt)?.[1]);
  const wanted = tool === undefined ? wordsOf(prompt) : wordsOf(JSON.stringify({ prompt }));
  const limit = request.max_completion_tokens ?? request.max_tokens ?? Number.POSITIVE_INFINITY;
  const pieces = wanted.slice(0, limit).map((word, at) => (at === 0 ? word : ` ${word}`));
  const isCut = pieces.length < wanted.length;
  const end = tool === undefined ? 'stop' : 'tool_calls';
  return {
    id: `chatcmpl-${createHash('sha256').update(JSON.stringify(request)).digest('hex').slice(0, 24)}`,
    model: request.model,
    pieces,
    ...(tool !== undefined && { tool }),
    finishReason: isCut ? 'length' : end,
    usage: usageOf(request, pieces.length),
  };
}

/** The text of the last message, of any role. */
export function promptOf({ messages }: ModelRequest): string {
  return textOf(messages.at(-1));
}

export function wantsUsage({ stream_options: options }: ModelRequest): boolean {
  return options?.include_usage === true;
}

/** The answer's one body. */
export function bodyOf(answer: ModelAnswer): Readonly<Record<string, unknown>> {
  const text = answer.pieces.join('');
  const content = answer.tool === undefined ? { content: text } : toolCall(answer, text);
  const choice = {
    index: 0,
    message: { role: 'assistant', ...content, refusal: null },
    logprobs: null,
    finish_reason: answer.finishReason,
  };
  return { ...headOf(answer, 'chat.completion'), choices: [choice], usage: answer.usage };
}

/** The chunks of a stream without its usage: the role, the pieces, the end. */
export function chunksOf(answer: ModelAnswer): readonly Readonly<Record<string, unknown>>[] {
  const { tool, pieces, finishReason } = answer;
  const start = tool === undefined ? { content: '' } : toolCall(answer, '');
  const deltas = pieces.map((piece) =>
    tool === undefined ? { content: piece } : { tool_calls: [{ index: 0, function: { arguments: piece } }] },
  );
  const head = headOf(answer, 'chat.completion.chunk');
  return [
    ...[{ role: 'assistant', ...start }, ...deltas].map((delta) => ({ delta, finish_reason: null })),
    { delta: {}, finish_reason: finishReason },
  ].map((choice) => ({ ...head, choices: [{ index: 0, ...choice, logprobs: null }] }));
}

/** The chunk with the usage and no choice, which goes before the end of a stream that asks for it. */
export function usageChunkOf(answer: ModelAnswer): Readonly<Record<string, unknown>> {
  return { ...headOf(answer, 'chat.completion.chunk'), choices: [], usage: answer.usage };
}

function headOf({ id, model }: ModelAnswer, object: string): Readonly<Record<string, unknown>> {
  return { id, object, created: createdSecs, model, system_fingerprint: 'fp_devnet' };
}

function toolCall({ id, tool }: ModelAnswer, text: string): object {
  const call = { index: 0, id: `call_${id.slice(-8)}`, type: 'function' };
  return { content: null, tool_calls: [{ ...call, function: { name: tool, arguments: text } }] };
}

function offeredTool({ tools }: ModelRequest, name: string | undefined): string | undefined {
  return tools?.some((tool) => tool.function?.name === name) ? name : undefined;
}

function wordsOf(prompt: string): readonly string[] {
  const [, count, letters] = /\bwords:(\d{1,6})(?:x(\d{1,5}))?\b/.exec(prompt) ?? [];
  if (count !== undefined)
    return Array.from({ length: Number(count) }, (_, at) =>
      `word${at + 1}`.padEnd(Number(letters ?? 0), 'x'),
    );
  return prompt.trim() === '' ? ['nothing'] : prompt.trim().split(/\s+/);
}

function usageOf({ messages }: ModelRequest, completionTokens: number): ModelUsage {
  const tokensOf = (counted: ModelRequest['messages']): number =>
    counted.reduce((sum, each) => sum + messageTokens + (textOf(each).match(/\S+/g)?.length ?? 0), 0);
  const promptTokens = tokensOf(messages);
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: tokensOf(messages.filter(({ role }) => role === 'system')) },
  };
}

function textOf(given: ModelRequest['messages'][number] | undefined): string {
  const content = given?.content ?? '';
  return typeof content === 'string' ? content : content.map(({ text }) => text ?? '').join(' ');
}

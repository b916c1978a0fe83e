import { z } from 'zod';
import { jsonBounds, type JsonProblem } from '../../base/values/bounded-json.ts';
import { isJsonObject, type JsonObject, parseJsonObject } from '../../base/values/exact-json.ts';
import { openAiError, type OpenAiError, type OpenAiErrorName } from '../../base/errors/openai-error.ts';

const maxMessages = 10_000;
const maxChoices = 128;

/** A message as far as this gateway reads it. */
export interface ChatMessage {
  readonly role: string;
  readonly content?: string | readonly ChatPart[] | null;
  readonly [member: string]: unknown;
}

interface ChatPart {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** A schema would report everything that is wrong with a list, which takes a second for one of 100,000 members. */
function firstWrongMessage(
  messages: readonly unknown[],
):
  | { readonly path: PropertyKey[]; readonly code: 'invalid_type' | 'too_small'; readonly message: string }
  | undefined {
  for (const [index, message] of messages.entries()) {
    if (!isJsonObject(message)) return { path: [index], code: 'invalid_type', message: 'must be an object' };
    const { role, content } = message;
    if (typeof role !== 'string')
      return { path: [index, 'role'], code: 'invalid_type', message: 'must be a string' };
    if (role === '') return { path: [index, 'role'], code: 'too_small', message: 'must not be empty' };
    if (!isContent(content))
      return {
        path: [index, 'content'],
        code: 'invalid_type',
        message: 'must be a string or an array of parts',
      };
  }
  return undefined;
}

function isContent(value: unknown): boolean {
  if (Array.isArray(value))
    return value.every((part) => isJsonObject(part) && typeof part['type'] === 'string');
  return value == null || typeof value === 'string';
}

const tokenLimit = z.int('must be a whole number above 0').min(1, 'must be a whole number above 0').nullish();
const choices = `must be a whole number from 1 to ${maxChoices}`;

/** Only the parameters that this gateway acts on: the upstream checks the others. */
const chatBody = z.looseObject({
  model: z.string('must be a string').min(1, 'must not be empty').max(200, 'is longer than 200 characters'),
  messages: z
    .array(z.unknown(), 'must be an array')
    .min(1, 'must hold a message')
    .max(maxMessages, `holds more than ${maxMessages} messages`)
    .check(({ value, issues }) => {
      const wrongMessage = firstWrongMessage(value);
      if (wrongMessage) issues.push({ ...wrongMessage, input: value } as z.core.$ZodRawIssue);
    }),
  stream: z.boolean('must be true or false').nullish(),
  stream_options: z
    .looseObject({ include_usage: z.boolean('must be true or false').nullish() }, 'must be an object')
    .nullish(),
  max_tokens: tokenLimit,
  max_completion_tokens: tokenLimit,
  n: z.int(choices).min(1, choices).max(maxChoices, choices).nullish(),
});

/** A chat completion request as far as this gateway acts on it. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly stream: boolean;
  /** Whether the client asked for usage at the end of its stream. */
  readonly wantsUsage: boolean;
  /** Of each choice; undefined if the client set none. Times `n` it is a safe integer. */
  readonly maxTokens: number | undefined;
  readonly n: number;
  /** Everything the client sent, with these messages. */
  readonly body: JsonObject;
}

const problemMessages: Readonly<Record<JsonProblem, { readonly message?: string }>> = {
  malformed: {},
  too_deep: { message: `The request body is nested deeper than ${jsonBounds.maxDepth} levels.` },
  too_many_values: {
    message: `The request body holds more than ${jsonBounds.maxMarks} values: commas, colons and opening brackets are counted.`,
  },
};

/** Reads a request body. Names its mistake in OpenAI's form, always with status 400. */
export function readChatRequest(bytes: Uint8Array): ChatRequest | { readonly invalid: OpenAiError } {
  const body = parseJsonObject(bytes);
  if (typeof body === 'string') return { invalid: openAiError('invalid_json', problemMessages[body]) };
  const parsed = chatBody.safeParse(body);
  if (!parsed.success) return { invalid: wrongParameter(body, parsed.error.issues[0]) };
  const { model, stream, stream_options: options, n } = parsed.data;
  const { max_tokens: older, max_completion_tokens: newer } = parsed.data;
  const maxTokens = newer ?? older ?? undefined;
  if (older != null && older !== maxTokens)
    return wrong(
      'invalid_parameter_combination',
      'max_tokens',
      'differs from max_completion_tokens: send one',
    );
  if (!Number.isSafeInteger((maxTokens ?? 1) * (n ?? 1)))
    return wrong('invalid_value', older == null ? 'max_completion_tokens' : 'max_tokens', 'is too large');
  // the text as sent, not the parsed copy: the counted text must be the text that is forwarded
  const messages = (body['messages'] as readonly ChatMessage[]).map(withoutAnswerMembers);
  return {
    model,
    messages,
    stream: stream ?? false,
    wantsUsage: options?.include_usage ?? false,
    maxTokens,
    n: n ?? 1,
    body: { ...body, messages },
  };
}

/**
 * The body for the upstream: the client's, except for the model's name, the limit of tokens (under the name that the client
 * used, else `max_tokens`) and, in a stream, the request for usage.
 */
export function rewriteForUpstream(
  request: ChatRequest,
  change: {
    readonly upstreamModel: string;
    readonly maxTokens?: number | undefined;
    readonly forceUsage: boolean;
  },
): string {
  const { body } = request;
  const limits = ['max_tokens', 'max_completion_tokens'].filter((key) => body[key] != null);
  const changed: Record<string, unknown> = { ...body, model: change.upstreamModel };
  if (change.maxTokens !== undefined)
    for (const key of limits.length > 0 ? limits : ['max_tokens']) changed[key] = change.maxTokens;
  if (change.forceUsage && request.stream)
    changed['stream_options'] = { ...asObject(body['stream_options']), include_usage: true };
  return JSON.stringify(changed);
}

function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function wrongParameter(body: JsonObject, issue: z.core.$ZodIssue | undefined): OpenAiError {
  if (issue === undefined) return openAiError('invalid_request');
  const param = paramText(issue.path);
  if (valueAt(body, issue.path) === undefined)
    return wrong('missing_required_parameter', param, 'is missing').invalid;
  const isType = issue.code === 'invalid_type' || issue.code === 'invalid_union';
  return wrong(isType ? 'invalid_type' : 'invalid_value', param, issue.message).invalid;
}

function wrong(name: OpenAiErrorName, param: string, what: string): { readonly invalid: OpenAiError } {
  return { invalid: openAiError(name, { param, message: `${param} ${what}.` }) };
}

/** As OpenAI writes it: `messages[2].content`. The keys are this gateway's own, never the client's. */
function paramText(path: readonly PropertyKey[]): string {
  return path
    .map((key, at) => (typeof key === 'number' ? `[${key}]` : `${at > 0 ? '.' : ''}${String(key)}`))
    .join('');
}

function valueAt(body: JsonObject, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined),
    body,
  );
}

/** What is kept of a member; undefined if it is dropped. */
type Keep = (value: unknown) => unknown;

const isText = (value: unknown): boolean => typeof value === 'string';
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
const isScalar = (value: unknown): boolean => typeof value !== 'object';

/** The members that pass their test; undefined if none does. */
const membersOf =
  (tests: Readonly<Record<string, (value: unknown) => boolean>>): Keep =>
  (value) => {
    if (!isJsonObject(value)) return undefined;
    const kept = Object.entries(value).filter(
      ([key, member]) => Object.hasOwn(tests, key) && tests[key]?.(member),
    );
    return kept.length > 0 ? Object.fromEntries(kept) : undefined;
  };
const google = membersOf({ thought: isScalar, thought_signature: isText });

/** Signatures of thoughts, without which Gemini takes no call of a tool back: LiteLLM has them in the one, Google in the other. */
const ofCall: Readonly<Record<string, Keep>> = {
  provider_specific_fields: membersOf({ thought_signature: isText, thought_signatures: isTexts }),
  extra_content: (value) => {
    const kept = isJsonObject(value) ? google(value['google']) : undefined;
    return kept && { google: kept };
  },
};
const ofMessage: Readonly<Record<string, Keep>> = {
  ...ofCall,
  id: () => undefined,
  // Anthropic takes no call of a tool back without those before it
  thinking_blocks: (value) => {
    const kept = Array.isArray(value)
      ? value.filter((block) => isJsonObject(block) && Object.values(block).every(isScalar))
      : [];
    return kept.length > 0 ? kept : undefined;
  },
  tool_calls: (value) => (Array.isArray(value) ? value.map((call) => keptOf(call, toolCall)) : value),
};
const toolCall: Readonly<Record<string, Keep>> = {
  ...ofCall,
  function: (value) => keptOf(value, ofCall),
};

/**
 * A message without the fields of this gateway's answers that no upstream needs: clients send whole answers back, and one vendor refuses
 * another vendor's fields. The same value where nothing is dropped.
 */
function withoutAnswerMembers<T>(message: T): T {
  return keptOf(message, ofMessage) as T;
}

function keptOf(value: unknown, rules: Readonly<Record<string, Keep>>): unknown {
  if (!isJsonObject(value) || !Object.keys(value).some((key) => Object.hasOwn(rules, key))) return value;
  const members = Object.entries(value).map(
    ([key, member]) =>
      [key, Object.hasOwn(rules, key) && member != null ? rules[key]?.(member) : member] as const,
  );
  return Object.fromEntries(members.filter(([, member]) => member !== undefined)) satisfies JsonObject;
}

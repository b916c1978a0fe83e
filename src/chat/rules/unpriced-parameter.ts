import type { ChatMessage, ChatRequest } from './chat-request.ts';
import { isJsonObject } from '../../base/values/exact-json.ts';
import { openAiError, type OpenAiError } from '../../base/errors/openai-error.ts';

type Check = (value: unknown) => boolean;
type Members = Readonly<Record<string, Check>>;

const anything: Check = () => true;
const scalar: Check = (value) => !Array.isArray(value) && !isJsonObject(value);
const only =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);
const either =
  (one: Check, other: Check): Check =>
  (value) =>
    one(value) || other(value);
const list =
  (ofItem: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(ofItem);
const table =
  (ofMember: Check): Check =>
  (value) =>
    isJsonObject(value) && Object.values(value).every(ofMember);
/** No members but these. */
const object =
  (members: Members): Check =>
  (value) =>
    isJsonObject(value) && strangerIn(members, value) === undefined;

const describedFunction: Members = {
  name: scalar,
  description: scalar,
  parameters: anything,
  strict: scalar,
};
const named = object({ name: scalar });
/** What {@link withoutAnswerMembers} has left of an answer that a client sends back. */
const thoughtSignatures: Members = {
  provider_specific_fields: object({ thought_signature: scalar, thought_signatures: list(scalar) }),
  extra_content: object({ google: object({ thought: scalar, thought_signature: scalar }) }),
};
const calledFunction = object({ name: scalar, arguments: anything, ...thoughtSignatures });

/** A tool that the client runs; any other is run, and charged, by the upstream. */
const ownTool = (cache: Members): Check =>
  object({
    type: only('function', 'custom'),
    function: object({ ...describedFunction, ...cache }),
    custom: object({ name: scalar, description: scalar, format: anything }),
    ...cache,
  });
const toolChoice = object({
  type: only('function', 'custom', 'allowed_tools'),
  name: scalar,
  function: named,
  custom: named,
  allowed_tools: anything,
});
const toolCall = object({
  id: scalar,
  index: scalar,
  type: only('function', 'custom'),
  function: calledFunction,
  custom: object({ name: scalar, input: anything }),
  ...thoughtSignatures,
});
/** Images, audio and files are tokens that nothing bounds, also if no price is at stake. */
const textPart = (cache: Members): Check =>
  object({ type: only('text', 'refusal'), text: scalar, refusal: scalar, ...cache });
/** Written to a cache for five minutes: other times have other prices. */
const cacheControl: Members = { cache_control: object({ type: only('ephemeral'), ttl: only('5m') }) };

/** OpenAI's parameters of text, and those by which servers of open models sample. Their cost is the model's tokens. */
const requestMembers: Members = {
  model: scalar,
  // each by itself, below
  messages: anything,
  stream: scalar,
  stream_options: object({ include_usage: scalar, include_obfuscation: scalar }),
  max_tokens: scalar,
  max_completion_tokens: scalar,
  n: scalar,
  temperature: scalar,
  top_p: scalar,
  stop: either(scalar, list(scalar)),
  presence_penalty: scalar,
  frequency_penalty: scalar,
  logit_bias: table(scalar),
  logprobs: scalar,
  top_logprobs: scalar,
  seed: scalar,
  user: scalar,
  safety_identifier: scalar,
  prompt_cache_key: scalar,
  metadata: table(scalar),
  store: only(false),
  response_format: object({
    type: only('text', 'json_object', 'json_schema'),
    json_schema: anything,
    schema: anything,
  }),
  tool_choice: either(only('none', 'auto', 'required', 'any'), toolChoice),
  parallel_tool_calls: scalar,
  functions: list(object(describedFunction)),
  function_call: either(only('none', 'auto'), named),
  reasoning_effort: scalar,
  verbosity: scalar,
  modalities: list(only('text')),
  service_tier: only('auto', 'default'),
  top_k: scalar,
  top_a: scalar,
  min_p: scalar,
  typical_p: scalar,
  repetition_penalty: scalar,
  repeat_penalty: scalar,
  length_penalty: scalar,
  no_repeat_ngram_size: scalar,
  min_tokens: scalar,
  ignore_eos: scalar,
  stop_token_ids: list(scalar),
  bad_words: list(scalar),
  include_stop_str_in_output: scalar,
  skip_special_tokens: scalar,
  mirostat: scalar,
  mirostat_tau: scalar,
  mirostat_eta: scalar,
  random_seed: scalar,
  chat_template_kwargs: object({ enable_thinking: scalar, thinking: scalar }),
};

interface Rules {
  readonly request: Members;
  readonly isPart: Check;
}

const rulesWith = (cache: Members): Rules => ({
  request: { ...requestMembers, tools: list(ownTool(cache)) },
  isPart: textPart(cache),
});
const withoutCache = rulesWith({});
const withCache = rulesWith(cacheControl);

const messageMembers: Members = {
  role: scalar,
  // each part by itself, below
  content: anything,
  name: scalar,
  refusal: scalar,
  tool_call_id: scalar,
  tool_calls: list(toolCall),
  function_call: calledFunction,
  // fields of an answer that clients send back
  reasoning: scalar,
  reasoning_content: scalar,
  reasoning_details: list(table(scalar)),
  thinking_blocks: list(table(scalar)),
  ...thoughtSignatures,
  annotations: list(object({ type: only('url_citation'), url_citation: table(scalar) })),
};

/**
 * The error for the first thing in a request that is not known to cost the model's tokens and no more: other models and
 * tiers, services charged by the call, content that is not text, limits under another name, the readings that upstreams may make of a name that
 * is not known here. Null means that a parameter is left out. Undefined if all are known.
 * @param allowed top-level parameters that the operator passes on unchecked
 * @param isCachePriced whether the price of tokens written to a cache is known
 */
export function unpricedParameter(
  { body, messages }: ChatRequest,
  allowed: readonly string[] = [],
  isCachePriced = false,
): OpenAiError | undefined {
  const { request, isPart } = isCachePriced ? withCache : withoutCache;
  const stranger = strangerIn(request, body, allowed);
  if (stranger !== undefined) return unsupported(cleaned(stranger));
  for (const [index, message] of messages.entries()) {
    const part = strangePart(message, isPart);
    if (part !== undefined) return unsupported(`messages[${index}].${part}`);
  }
  return undefined;
}

function strangePart(message: ChatMessage, isPart: Check): string | undefined {
  const stranger = strangerIn(messageMembers, message);
  if (stranger !== undefined) return cleaned(stranger);
  const { content } = message;
  const at = Array.isArray(content) ? content.findIndex((part) => !isPart(part)) : -1;
  return at < 0 ? undefined : `content[${at}]`;
}

/** The name of the first member that is not allowed, or not with that value. */
function strangerIn(
  members: Members,
  value: Readonly<Record<string, unknown>>,
  allowed: readonly string[] = [],
): string | undefined {
  for (const [key, member] of Object.entries(value)) {
    if (member == null || allowed.includes(key)) continue;
    // a property of Object.prototype is none of these
    const check = Object.hasOwn(members, key) ? members[key] : undefined;
    if (!check?.(member)) return key;
  }
  return undefined;
}

/** A name that a client chose, fit to be shown. */
function cleaned(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_.-]+/g, '').slice(0, 64);
}

function unsupported(param: string): OpenAiError {
  const what = param === '' ? 'A parameter' : param;
  return openAiError('unsupported_parameter', {
    ...(param !== '' && { param }),
    message: `${what} cannot be used with this model in this form.`,
  });
}

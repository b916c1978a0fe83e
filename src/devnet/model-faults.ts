import {
  bodyOf,
  chunksOf,
  type ModelAnswer,
  type ModelRequest,
  promptOf,
  usageChunkOf,
  wantsUsage,
} from './model-answer.ts';

/** The next step on a connection. After the last step the answer ends as HTTP requires. */
export type Step =
  | { readonly status: number; readonly headers: Readonly<Record<string, string>> }
  | { readonly write: string }
  | { readonly waitMs: number }
  /** Keeps silent until the client goes. */
  | 'hang'
  /** Drops the connection, whatever was announced. */
  | 'cut';

export interface FaultOptions {
  /** How long `slow_first_byte` is slow. Default: 2000. */
  readonly slowMs?: number;
  /** What `rate_limited` and `status_503` tell the client. Default: 1. */
  readonly retryAfterSecs?: number;
}

interface Scene extends Required<FaultOptions> {
  readonly request: ModelRequest;
  readonly answer: ModelAnswer;
}

const done = 'data: [DONE]\n\n';
const html = '<!doctype html><html><body><h1>Welcome</h1></body></html>';
const overload = {
  message: 'The model is overloaded.',
  type: 'server_error',
  param: null,
  code: 'overloaded',
};

/** Each fault, by its name after `fault:` in a prompt. */
const faults = {
  status_500: () => errorSteps(500, 'server_error'),
  status_502: () => [head(502, 'text/html'), { write: html }],
  status_503: ({ retryAfterSecs }) => errorSteps(503, 'overloaded', retryAfterSecs),
  rate_limited: ({ retryAfterSecs }) => errorSteps(429, 'rate_limit_exceeded', retryAfterSecs),
  rate_limited_silently: () => errorSteps(429, 'rate_limit_exceeded'),
  bad_request: () => errorSteps(400, 'context_length_exceeded'),
  redirect: () => [{ status: 307, headers: { location: '/v1/elsewhere' } }],
  slow_first_byte: (scene) => [okHead(scene), { waitMs: scene.slowMs }, ...written(framesOf(scene))],
  hang: () => ['hang'],
  stall_mid_stream: (scene) => [okHead(scene), ...beginning(scene), 'hang'],
  cut_before_first_byte: () => ['cut'],
  cut_after_first_token: (scene) => [okHead(scene), ...beginning(scene), 'cut'],
  missing_usage: (scene) => [okHead(scene), ...written(framesWithout(scene, 'usage'))],
  usage_twice: (scene) => [okHead(scene), ...written(framesWithTwoUsages(scene))],
  choices_null: (scene) => [okHead(scene), ...written(framesWithNull(scene))],
  malformed_chunk: (scene) => [okHead(scene), ...beginning(scene), { write: 'data: {"choices":[{\n\n' }],
  invalid_sse: (scene) => [okHead(scene), { write: 'this is not an event stream\n\n' }],
  html: () => [head(200, 'text/html; charset=utf-8'), { write: html }],
  empty: (scene) => [okHead(scene)],
  error_in_stream: (scene) => [
    okHead(scene),
    ...(isStream(scene) ? beginning(scene) : []),
    overloaded(scene),
  ],
  error_first: (scene) => [okHead(scene), overloaded(scene)],
  truncated_json: (scene) => [okHead(scene), { write: framesOf(scene).join('').slice(0, -40) }],
  wrong_content_type: (scene) => [
    head(200, isStream(scene) ? 'application/json' : 'text/event-stream'),
    ...written(framesOf(scene)),
  ],
  /** The answer is whole, and its stream ends as HTTP ends one: only `[DONE]` is missing. */
  no_done: (scene) => [okHead(scene), ...written(framesWithout(scene, 'done'))],
} satisfies Record<string, (scene: Scene) => readonly Step[]>;

export type Fault = keyof typeof faults;

export const faultNames = Object.keys(faults) as readonly Fault[];

/** The steps of an answer, healthy or with a fault. */
export function stepsOf(
  request: ModelRequest,
  answer: ModelAnswer,
  fault: Fault | undefined,
  { slowMs = 2000, retryAfterSecs = 1 }: FaultOptions = {},
): readonly Step[] {
  const scene = { request, answer, slowMs, retryAfterSecs };
  return fault === undefined ? [okHead(scene), ...written(framesOf(scene))] : faults[fault](scene);
}

/**
 * The fault that a prompt asks for: `fault:NAME`, or `fault:NAME@UPSTREAM` where only that upstream is to fail.
 * An unknown name means no fault.
 */
export function faultIn(request: ModelRequest, upstream: string): Fault | undefined {
  const [, name, only] = /\bfault:(\w+)(?:@([\w-]+))?/.exec(promptOf(request)) ?? [];
  return only === undefined || only === upstream ? faultNames.find((each) => each === name) : undefined;
}

export function jsonSteps(status: number, value: unknown, retryAfterSecs?: number): readonly Step[] {
  return [head(status, 'application/json', retryAfterSecs), { write: JSON.stringify(value) }];
}

function errorSteps(status: number, code: string, retryAfterSecs?: number): readonly Step[] {
  const error = { message: `This is ${code}, as asked.`, type: 'devnet_error', param: null, code };
  return jsonSteps(status, { error }, retryAfterSecs);
}

function head(status: number, type: string, retryAfterSecs?: number): Step {
  const retry = retryAfterSecs === undefined ? {} : { 'retry-after': String(retryAfterSecs) };
  return { status, headers: { 'content-type': type, ...retry } };
}

function okHead(scene: Scene): Step {
  return head(200, isStream(scene) ? 'text/event-stream; charset=utf-8' : 'application/json');
}

function isStream({ request }: Scene): boolean {
  return request.stream === true;
}

function written(frames: readonly string[]): readonly Step[] {
  return frames.map((write) => ({ write }));
}

/** The events of a stream, or the one body. */
function framesOf(scene: Scene): readonly string[] {
  return framesWithout(scene);
}

function framesWithout(scene: Scene, missing?: 'usage' | 'done'): readonly string[] {
  const { request, answer } = scene;
  const hasUsage = missing !== 'usage';
  if (!isStream(scene))
    return [JSON.stringify({ ...bodyOf(answer), ...(hasUsage ? {} : { usage: undefined }) })];
  const isWanted = wantsUsage(request);
  // as OpenAI does: when usage is requested, the chunks before it have the usage null
  const chunks = chunksOf(answer).map((chunk) => eventOf(isWanted ? { ...chunk, usage: null } : chunk));
  const usage = isWanted && hasUsage ? [eventOf(usageChunkOf(answer))] : [];
  return [...chunks, ...usage, ...(missing === 'done' ? [] : [done])];
}

/** The last usage is the right one. */
function framesWithTwoUsages(scene: Scene): readonly string[] {
  const wrong = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const frames = framesOf(scene);
  if (isStream(scene))
    return frames.toSpliced(1, 0, eventOf({ ...usageChunkOf(scene.answer), usage: wrong }));
  return [`{"usage":${JSON.stringify(wrong)},${frames.join('').slice(1)}`];
}

function framesWithNull(scene: Scene): readonly string[] {
  if (!isStream(scene)) return [JSON.stringify({ ...bodyOf(scene.answer), choices: null })];
  return [eventOf({ ...usageChunkOf(scene.answer), choices: null, usage: null }), ...framesOf(scene)];
}

/** The role and the first token, or the first 60 characters of a body. */
function beginning(scene: Scene): readonly Step[] {
  const frames = framesOf(scene);
  return written(isStream(scene) ? frames.slice(0, 2) : [frames.join('').slice(0, 60)]);
}

function overloaded(scene: Scene): Step {
  return { write: isStream(scene) ? eventOf({ error: overload }) : JSON.stringify({ error: overload }) };
}

function eventOf(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

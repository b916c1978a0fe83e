import { describe, expect, test } from 'vitest';
import { type Fault, faultNames } from '../../../../src/devnet/model-faults.ts';
import type { ModelUpstream } from '../../../../src/devnet/model-upstream.ts';
import type { UpstreamOptions } from '../../../../src/chat/peers/upstream/upstream.ts';
import { holdDeadlines } from '../../../support/deadlines.ts';
import { eventually } from '../../../support/wait.ts';
import { ask, askStream, readAll, startModel } from './support.ts';

/** What becomes of a request that meets a fault: as a whole, or as a stream once it has begun. */
interface Expected {
  readonly whole: object;
  /** An answer in place of a stream, … */
  readonly instead?: object;
  /** … or how the stream that began ended. */
  readonly ending?: object;
  readonly limits?: Partial<UpstreamOptions>;
}

const stallMs = 60_000;
const usage = { promptTokens: 7, completionTokens: 3, cachedTokens: 0 };
const completed = { kind: 'completed', usage, finishReason: 'stop', isFinished: true };
const failed = (cause: string, more: object = {}): object => ({
  kind: 'failed',
  cause,
  beforeFirstByte: true,
  ...more,
});
const refused = (status: number, fault: string, code: string, more: object = {}): object => ({
  kind: 'refused',
  status,
  fault,
  error: { code },
  ...more,
});
const broken = (cause: string, more: object = {}): object => ({
  kind: 'failed',
  cause,
  beforeFirstByte: false,
  isFinished: false,
  ...more,
});
const both = (answer: object, limits?: Partial<UpstreamOptions>): Expected => ({
  whole: answer,
  instead: answer,
  ...(limits && { limits }),
});
const terminated = { ...completed, isTerminated: true };
const overloaded = {
  error: { message: 'The model is overloaded.', type: 'server_error', code: 'overloaded' },
};

const expectations: Readonly<Record<Fault, Expected>> = {
  status_500: both(failed('status_500', { error: { code: 'server_error' } })),
  status_502: both(failed('status_502')),
  status_503: both(failed('status_503', { retryAfterSecs: 7 })),
  rate_limited: both(refused(429, 'upstream', 'rate_limit_exceeded', { retryAfterSecs: 7 })),
  rate_limited_silently: both(refused(429, 'upstream', 'rate_limit_exceeded')),
  bad_request: both(refused(400, 'request', 'context_length_exceeded')),
  redirect: both(failed('status_307')),
  slow_first_byte: { whole: completed, ending: terminated },
  hang: both(failed('first_byte_timeout'), { firstByteTimeoutMs: 50 }),
  stall_mid_stream: {
    whole: failed('stalled'),
    ending: broken('stalled'),
    limits: { idleTimeoutMs: stallMs },
  },
  cut_before_first_byte: both(failed('cut')),
  cut_after_first_token: { whole: failed('cut'), ending: broken('cut', { written: 'one' }) },
  missing_usage: {
    whole: { ...completed, usage: undefined },
    ending: { ...terminated, usage: undefined },
  },
  usage_twice: { whole: completed, ending: terminated },
  choices_null: { whole: failed('malformed'), ending: terminated },
  malformed_chunk: { whole: failed('malformed'), ending: broken('malformed', { written: 'one' }) },
  invalid_sse: both(failed('malformed')),
  html: both(failed('html')),
  empty: both(failed('empty')),
  error_in_stream: {
    whole: failed('error_object', overloaded),
    ending: broken('error_object', { written: 'one', ...overloaded }),
  },
  error_first: both(failed('error_object', overloaded)),
  truncated_json: { whole: failed('malformed'), ending: { ...broken('cut'), isFinished: true } },
  wrong_content_type: both(failed('wrong_type')),
  no_done: { whole: completed, ending: { ...completed, isTerminated: false } },
};

/** Where the model stalls: ends the time limit of that once what comes before has been sent. */
async function endingStall(model: ModelUpstream, fault: Fault): Promise<void> {
  if (fault !== 'stall_mid_stream') return;
  const deadlines = holdDeadlines();
  await eventually(() => expect(model.calls[0]?.sentBytes).toBeGreaterThan(0));
  await eventually(async () => expect(await deadlines.end(stallMs)).toEqual([stallMs]));
}

const promptOf = (fault: Fault): string => `one two fault:${fault}`;
const modelOptions = { slowMs: 30, retryAfterSecs: 7 };

describe('an answer asked for as a whole', () => {
  test.each(faultNames)('with %s', async (fault) => {
    const { whole, limits } = expectations[fault];
    const { model, upstream } = await startModel(limits, modelOptions);
    const asking = endingStall(model, fault);
    const answer = await ask(upstream, promptOf(fault));
    await asking;
    expect({ usage: undefined, ...answer }).toMatchObject(whole);
    expect(upstream.running).toBe(0);
  });
});

describe('a stream', () => {
  const inPlace = faultNames.filter((fault) => expectations[fault].instead);
  const begun = faultNames.filter((fault) => expectations[fault].ending);

  test.each(inPlace)('with %s never begins, so that another upstream may be asked', async (fault) => {
    const { instead, limits } = expectations[fault];
    const { upstream } = await startModel(limits, modelOptions);
    expect(await askStream(upstream, promptOf(fault))).toMatchObject(instead ?? {});
    expect(upstream.running).toBe(0);
  });

  test.each(begun)('with %s begins, and says how it ended', async (fault) => {
    const { ending: expected, limits } = expectations[fault];
    const { model, upstream } = await startModel(limits, modelOptions);
    const asking = endingStall(model, fault);
    const { roles, ending } = await readAll(await askStream(upstream, promptOf(fault)));
    await asking;
    expect({ usage: undefined, ...ending }).toMatchObject(expected ?? {});
    // The end is given out only if the answer is whole.
    expect(roles.includes('done')).toBe(ending.kind === 'completed' && ending.isTerminated);
    expect(roles[0]).toBe('part');
    expect(upstream.running).toBe(0);
  });

  test('counts every kind of fault once', () => {
    expect([...inPlace, ...begun].toSorted()).toEqual([...faultNames].toSorted());
  });

  test('that is too late to begin is not a stream', async () => {
    const { upstream } = await startModel({ firstByteTimeoutMs: 50 }, { slowMs: 60_000 });
    expect(await askStream(upstream, 'fault:slow_first_byte')).toMatchObject(failed('first_byte_timeout'));
  });
});

describe('a refusal', () => {
  test.each([
    [401, 'invalid_api_key', { key: 'wrong' }, 'devnet-small'],
    [404, 'model_not_found', { key: 'right' }, 'devnet-none'],
  ])("with %i is the upstream's condition", async (status, code, options, model) => {
    const { upstream } = await startModel(options, { key: 'right' });
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] });
    expect(await upstream.complete(body, { stream: false })).toMatchObject(refused(status, 'upstream', code));
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ModelUpstream, startModelUpstream } from '../../src/devnet/model-upstream.ts';
import { eventually } from '../support/wait.ts';

let upstream: ModelUpstream;
beforeAll(async () => {
  upstream = await startModelUpstream({ name: 'first', key: 'secret' });
});
afterAll(() => upstream.close());

function ask(prompt: string, change: object = {}, init: RequestInit = {}): Promise<Response> {
  const messages = [
    { role: 'system', content: 'be brief' },
    { role: 'user', content: prompt },
  ];
  return fetch(`${upstream.url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer secret' },
    body: JSON.stringify({ model: 'devnet-small', messages, ...change }),
    ...init,
  });
}

async function eventsOf(response: Response): Promise<unknown[]> {
  const events = (await response.text()).split('\n\n').slice(0, -1);
  return events.map((event) => (event === 'data: [DONE]' ? 'done' : (JSON.parse(event.slice(6)) as unknown)));
}

const usage = {
  prompt_tokens: 13,
  completion_tokens: 3,
  total_tokens: 16,
  prompt_tokens_details: { cached_tokens: 6 },
};

describe('the model upstream', () => {
  test('lists its models', async () => {
    const response = await fetch(`${upstream.url}/models`, { headers: { authorization: 'Bearer secret' } });
    expect(await response.json()).toMatchObject({
      object: 'list',
      data: [{ id: 'devnet-small' }, { id: 'devnet-large' }],
    });
  });

  test('answers with the prompt and the usage, the same every time', async () => {
    const answers = [await ask('one two three'), await ask('one two three')].map((each) => each.text());
    const [first, second] = await Promise.all(answers);
    expect(JSON.parse(first ?? '')).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { role: 'assistant', content: 'one two three' }, finish_reason: 'stop' }],
      usage,
    });
    expect(second).toBe(first);
  });

  test('streams its answer a word at a time, with usage only when requested', async () => {
    const plain = await eventsOf(await ask('one two three', { stream: true }));
    const counted = await eventsOf(
      await ask('one two three', { stream: true, stream_options: { include_usage: true } }),
    );
    const deltas = ['', 'one', ' two', ' three'].map((content) => ({ choices: [{ delta: { content } }] }));
    expect(plain).toMatchObject([...deltas, { choices: [{ finish_reason: 'stop' }] }, 'done']);
    expect(plain[0]).not.toHaveProperty('usage');
    expect(counted).toHaveLength(plain.length + 1);
    expect(counted.at(-2)).toMatchObject({ choices: [], usage });
    expect(counted[0]).toMatchObject({ usage: null });
  });

  test('stops at the maximum number of tokens', async () => {
    expect(await (await ask('words:9', { max_tokens: 2 })).json()).toMatchObject({
      choices: [{ message: { content: 'word1 word2' }, finish_reason: 'length' }],
      usage: { completion_tokens: 2 },
    });
  });

  test('calls a tool that was offered, streaming and not', async () => {
    const tools = [{ type: 'function', function: { name: 'weather' } }];
    const called = { name: 'weather', arguments: '{"prompt":"call tool weather"}' };
    expect(await (await ask('call tool weather', { tools })).json()).toMatchObject({
      choices: [
        { message: { content: null, tool_calls: [{ function: called }] }, finish_reason: 'tool_calls' },
      ],
    });
    const events = await eventsOf(await ask('call tool weather', { tools, stream: true }));
    expect(JSON.stringify(events)).toContain('"finish_reason":"tool_calls"');
    expect(await (await ask('call tool other', { tools })).json()).toMatchObject({
      choices: [{ message: { content: 'call tool other' } }],
    });
  });

  test.each([
    [401, 'invalid_api_key', {}, { headers: { authorization: 'Bearer other' } }],
    [404, 'model_not_found', { model: 'unknown' }, {}],
    [400, 'invalid_request', { messages: [] }, {}],
    [400, 'invalid_request', {}, { body: '{' }],
  ])('refuses an invalid request with %i %s', async (status, code, change, init) => {
    const response = await ask('hello', change, init);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code, type: 'invalid_request_error' } });
  });
});

describe('a fault of the model upstream', () => {
  test('applies to the upstream that the prompt names, or to all', async () => {
    expect((await ask('fault:status_500@first')).status).toBe(500);
    expect((await ask('fault:status_500@second')).status).toBe(200);
    expect((await ask('fault:status_500')).status).toBe(500);
    expect((await ask('fault:nonsense')).status).toBe(200);
  });

  test('lasts until it is switched off', async () => {
    upstream.failWith('status_503');
    const response = await ask('hello');
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
    upstream.failWith(undefined);
    expect((await ask('hello')).status).toBe(200);
  });

  test('that hangs ends when the client disconnects, and is recorded as dropped', async () => {
    const client = new AbortController();
    const answer = ask('fault:hang', {}, { signal: client.signal });
    await eventually(() =>
      expect(upstream.calls.at(-1)).toMatchObject({ body: expect.stringContaining('fault:hang') }),
    );
    client.abort();
    await expect(answer).rejects.toThrow('aborted');
    await eventually(() => expect(upstream.calls.at(-1)).toMatchObject({ state: 'dropped', sentBytes: 0 }));
  });
});

import { writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { pause } from '../../../src/base/runtime/pause.ts';
import { startModelUpstream } from '../../../src/devnet/model-upstream.ts';
import { issueApiKey } from '../../../src/accounts/use-cases/api-keys.ts';
import { findAccount } from '../../../src/accounts/store/credit.ts';
import { expectBooks, fund, databaseWithLane } from '../../support/credit.ts';
import { allEvents } from '../../support/invariants.ts';
import { startTollbook, temporaryFolder } from '../../support/program.ts';
import { ask, oneModel, paidModel, startChatGateway } from '../../support/chat-gateway.ts';
import { logLines } from '../../support/log-lines.ts';
import { eventually } from '../../support/wait.ts';
import { listening } from '../../support/listening.ts';

async function errorOf(answer: Response): Promise<{ readonly code: string; readonly message: string }> {
  return ((await answer.json()) as { error: { code: string; message: string } }).error;
}

/** The maximum cost of a completion of this request, in micros, from its own refusal. */
async function boundOf(gateway: Awaited<ReturnType<typeof startChatGateway>>, body: object) {
  const answer = await gateway.post(body, { authorization: `Bearer ${await gateway.key(0n)}` });
  expect(answer.status).toBe(402);
  const { message } = await errorOf(answer);
  const [, units = '', fraction = ''] = /may cost up to (\d+)(?:\.(\d+))?/.exec(message) ?? [];
  return BigInt(units) * 1_000_000n + BigInt(fraction.padEnd(6, '0'));
}

const body = { ...ask('words:3'), max_tokens: 50 };

describe('credit for completions', () => {
  test('is charged at the price of cached input for the tokens that the upstream read from its cache', async () => {
    const gateway = await startChatGateway({
      change: (text) => text.replace('output_price = "10.00"', '$&\ncached_input_price = "0.25"'),
    });
    const messages = [
      { role: 'system', content: 'long instructions '.repeat(200) },
      { role: 'user', content: 'words:3' },
    ];
    const answer = await gateway.post(
      { model: paidModel, messages },
      { authorization: `Bearer ${await gateway.key()}` },
    );
    const { usage } = (await answer.json()) as {
      usage: {
        prompt_tokens: number;
        completion_tokens: number;
        prompt_tokens_details: { cached_tokens: number };
      };
    };
    const cached = usage.prompt_tokens_details.cached_tokens;
    expect(cached).toBeGreaterThan(100);
    const cost = (usage.prompt_tokens - cached) * 2.5 + cached * 0.25 + usage.completion_tokens * 10;
    const completed = await eventually(async () => {
      const found = (await expectBooks(gateway.database)).find(({ type }) => type === 'chat_completed');
      if (!found) throw new Error('it is not settled');
      return found.data;
    });
    expect(completed).toMatchObject({ cached_tokens: cached, cost_micros: String(Math.ceil(cost)) });
  });

  test('that covers less than a typical answer limits the answer', async () => {
    const gateway = await startChatGateway();
    const open = ask('words:400');
    const bound = await boundOf(gateway, { ...open, max_tokens: 100 });
    const answer = await gateway.post(open, { authorization: `Bearer ${await gateway.key(bound)}` });
    expect(answer.status).toBe(200);
    await answer.text();
    const upstreamRequest = JSON.parse(gateway.model.calls.at(-1)?.body ?? '{}');
    // a limit that is not in the request leaves a little more for the answer
    expect(upstreamRequest.max_tokens).toBeGreaterThanOrEqual(100);
    expect(upstreamRequest.max_tokens).toBeLessThan(120);
  });

  test('is held for the longest answer where an eighth of it pays for that, and else for what the eighth pays for', async () => {
    const gateway = await startChatGateway();
    const open = ask('words:3');
    const whole = await boundOf(gateway, { ...open, max_tokens: 16_384 });
    const limitFor = async (micros: bigint): Promise<number> => {
      const answer = await gateway.post(open, { authorization: `Bearer ${await gateway.key(micros)}` });
      expect(answer.status).toBe(200);
      return JSON.parse(gateway.model.calls.at(-1)?.body ?? '{}').max_tokens;
    };
    expect(await limitFor(whole * 8n)).toBe(16_384);
    // half of that pays for half the length, a little more without the prompt's share
    const half = await limitFor(whole * 4n);
    expect(half).toBeGreaterThan(7_900);
    expect(half).toBeLessThan(8_300);
    expect(await limitFor(whole)).toBeGreaterThanOrEqual(1_024);
  });

  test('that is small pays for ten simultaneous requests without a length, each for a typical answer', async () => {
    const gateway = await startChatGateway();
    const open = ask('words:3 fault:slow_first_byte');
    const typical = await boundOf(gateway, { ...open, max_tokens: 1_024 });
    const whole = await boundOf(gateway, { ...open, max_tokens: 16_384 });
    const credit = typical * 12n;
    expect(credit).toBeLessThan(whole * 2n);
    const key = { authorization: `Bearer ${await gateway.key(credit)}` };
    const answers = await Promise.all(Array.from({ length: 10 }, () => gateway.post(open, key)));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    await Promise.all(answers.map((answer) => answer.text()));
    const limits = gateway.model.calls.map((call) => JSON.parse(call.body).max_tokens);
    expect(limits).toHaveLength(10);
    expect(Math.min(...limits)).toBeGreaterThanOrEqual(1_024);
    const held = (await allEvents(gateway.database.db)).flatMap((event) =>
      event.type === 'credit_held' ? BigInt(event.data.amount_micros) : [],
    );
    expect(held.reduce((sum, micros) => sum + micros, 0n)).toBeLessThanOrEqual(credit);
    await eventually(() => expectBooks(gateway.database));
  });

  test('of zero refuses a paid model with balance and cost, and admits a free one', async () => {
    const gateway = await startChatGateway();
    const key = { authorization: `Bearer ${await gateway.key(0n)}` };
    const refused = await gateway.post(body, key);
    expect(refused.status).toBe(402);
    const error = await errorOf(refused);
    expect(error).toMatchObject({ code: 'insufficient_funds' });
    expect(error.message).toMatch(/balance is 0 USD.*up to 0\.\d+ USD/);
    expect((await gateway.post(ask('hello', 'devnet-small'), key)).status).toBe(200);
    expect(gateway.model.calls).toHaveLength(1);
  });
});

/** An upstream whose answer has the usage that the prompt names as JSON. */
async function startUsageUpstream(): Promise<string> {
  const server = http.createServer((request, response) => {
    void (async () => {
      const asked = Buffer.concat(await request.toArray()).toString();
      const { messages } = JSON.parse(asked) as { messages: { content: string }[] };
      const choices = '[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"yes"}}]';
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(`{"choices":${choices},"usage":${messages[0]?.content}}`);
    })();
  });
  const at = await listening(server);
  return `${at}/v1`;
}

test('a mark for the cache is taken where the model has the price of writing to one, and reaches the upstream', async () => {
  const cached = { cache_control: { type: 'ephemeral' } };
  const content = [{ type: 'text', text: 'words:3', ...cached }];
  const marked = { model: paidModel, max_tokens: 50, messages: [{ role: 'user', content }] };
  const plain = await startChatGateway();
  const refused = await plain.post(marked, { authorization: `Bearer ${await plain.key()}` });
  expect([refused.status, (await errorOf(refused)).code]).toEqual([400, 'unsupported_parameter']);
  const gateway = await startChatGateway({
    change: (text) => text.replace('output_price = "10.00"', '$&\ncache_write_price = "3.125"'),
  });
  const answer = await gateway.post(marked, { authorization: `Bearer ${await gateway.key()}` });
  expect(answer.status).toBe(200);
  await answer.text();
  expect(JSON.parse(gateway.model.calls.at(-1)?.body ?? '{}').messages).toEqual(marked.messages);
  await eventually(() => expectBooks(gateway.database));
});

test('reasoning that an upstream counts separately from the completion is charged as output, and reasoning included in it once', async () => {
  const gateway = await startChatGateway({ upstreamUrl: await startUsageUpstream() });
  const key = { authorization: `Bearer ${await gateway.key()}` };
  const beside = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 370 };
  const among = { prompt_tokens: 500, completion_tokens: 500, total_tokens: 1000, reasoning_tokens: 200 };
  for (const usage of [beside, among])
    expect((await gateway.post({ ...ask(JSON.stringify(usage)), max_tokens: 1000 }, key)).status).toBe(200);
  await eventually(async () => {
    const events = await expectBooks(gateway.database);
    const costs = events.flatMap((event) => (event.type === 'chat_completed' ? event.data.cost_micros : []));
    expect(costs.toSorted()).toEqual(['3550', '6250']);
  });
});

test('a hold is settled with at most its amount, and the operator gets an alert, whatever usage an upstream reports', async () => {
  const { lines, logger } = logLines();
  const gateway = await startChatGateway({ upstreamUrl: await startUsageUpstream(), logger });
  const bound = await boundOf(gateway, { ...ask('{}'.padEnd(80)), max_tokens: 50 });
  const key = { authorization: `Bearer ${await gateway.key(bound * 20n)}` };
  const counts = ['-5', '0.5', '1e308', '9007199254740991', '"12"', '[]', '900000000', '{"a":1}'];
  for (const count of counts) {
    const usage = `{"prompt_tokens":3,"completion_tokens":${count}}`.padEnd(80);
    const answer = await gateway.post({ ...ask(usage), max_tokens: 50 }, key);
    expect([count, answer.status]).toEqual([count, 200]);
    await answer.text();
  }
  await eventually(async () => {
    expect((await gateway.database.pool.query('select * from tollbook.chat_hold')).rows).toEqual([]);
  });
  await expectBooks(gateway.database);
  const events = await allEvents(gateway.database.db);
  const completed = events.flatMap((event) => (event.type === 'chat_completed' ? event.data : []));
  expect(completed).toHaveLength(counts.length);
  const costs = completed.map((data) => BigInt(data.cost_micros) - BigInt(data.uncovered_micros ?? 0));
  for (const cost of costs) expect(cost).toBeLessThanOrEqual(bound);
  // the two counts that could be true are charged with the whole hold, the others are estimated
  expect(completed.filter((data) => !data.is_estimate)).toHaveLength(2);
  // once an hour for an upstream and its model
  await eventually(async () => {
    const reports = (await allEvents(gateway.database.db)).filter(
      ({ type }) => type === 'operator_usage_implausible',
    );
    expect(reports).toMatchObject([{ data: { upstream: 'model', model: paidModel } }]);
  });
  await eventually(() => {
    expect(lines.map(({ alert }) => alert)).toContain('operator_usage_implausible');
  });
});

test('a whole answer that is still being written is not charged when its process dies', async () => {
  // as large models do: the status comes at once, the answer much later
  const gateway = await startChatGateway({ model: { slowMs: 1_000 } });
  const key = { authorization: `Bearer ${await gateway.key()}` };
  const asked = gateway.post({ ...ask('words:3 fault:slow_first_byte'), max_tokens: 50 }, key);
  const holds = async () => {
    const { rows } = await gateway.database.pool.query('select started_at from tollbook.chat_hold');
    return rows.map(({ started_at: startedAt }) => startedAt !== null);
  };
  await eventually(() => expect(gateway.model.calls).toHaveLength(1));
  const isWaiting = () => gateway.model.calls[0]?.sentBytes === 0;
  const seen: boolean[] = [];
  while (isWaiting()) {
    const found = await holds();
    if (isWaiting()) seen.push(...found);
    await pause(20);
  }
  expect(new Set(seen)).toEqual(new Set([false]));
  expect((await asked).status).toBe(200);
});

test('kill -9 under load leaves no hold, delivered completions are charged, and the books balance', async () => {
  const model = await startModelUpstream({ port: 0, pieceMs: 15 });
  onTestFinished(() => model.close());
  const { database, lane } = await databaseWithLane();
  const accountId = await fund(database, lane, 100_000_000n);
  const { key } = await issueApiKey({ ...database, lane }, { accountId, name: 'of a test' });
  const file = path.join(temporaryFolder(), 'gateway.toml');
  writeFileSync(
    file,
    `bind_address = "127.0.0.1:0"\nfeatures = ["chat"]\n[chat]\nkey_per_minute = 1000\naccount_per_minute = 1000\n${oneModel(model.url)}`,
  );
  const serve = async () => {
    const program = startTollbook(['serve', '--config', file], { DATABASE_URL: database.url });
    const [, url = ''] = await program.says(/"url":"([^"]+)","msg":"listening"/);
    return { program, url };
  };
  const killed = await serve();
  let delivered = 0;
  const chat = async (at: number): Promise<void> => {
    const response = await fetch(`${killed.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({ ...ask('words:60', paidModel), stream: at % 2 === 0, max_tokens: 100 }),
    });
    if ((await response.text()).length > 0) delivered += 1;
  };
  const chats = Array.from({ length: 40 }, (_, at) => chat(at).catch(() => {}));
  await eventually(() => expect(model.calls.length).toBeGreaterThan(20));
  await eventually(async () => {
    const { rows } = await database.pool.query(
      'select from tollbook.chat_hold where started_at is not null limit 1',
    );
    expect(rows).toHaveLength(1);
  });
  killed.program.kill('SIGKILL');
  await killed.program.ended;
  await Promise.all(chats);

  await serve();
  await database.moveClock(20);
  await eventually(async () => {
    const { rows } = await database.pool.query('select * from tollbook.chat_hold');
    expect(rows).toEqual([]);
  });
  await expectBooks(database);
  const events = await allEvents(database.db);
  const begun = events.filter(({ type }) => type === 'chat_admitted').map(({ stream }) => stream);
  const ended = events.filter(({ type }) => type === 'chat_completed' || type === 'chat_failed');
  expect(new Set(ended.map(({ stream }) => stream))).toEqual(new Set(begun));
  const captured = events.filter(({ type }) => type === 'credit_captured');
  expect(captured.length).toBeGreaterThanOrEqual(delivered);
  expect(await findAccount(database.db, { accountId })).toMatchObject({ heldMicros: 0 });
});

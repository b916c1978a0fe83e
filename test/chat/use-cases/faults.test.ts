import { describe, expect, test } from 'vitest';
import type { EventData } from '../../../src/ledger/rules/event.ts';
import type { Fault } from '../../../src/devnet/model-faults.ts';
import { startModelUpstream } from '../../../src/devnet/model-upstream.ts';
import { allEvents } from '../../support/invariants.ts';
import { expectBooks } from '../../support/credit.ts';
import {
  ask,
  startChatGateway,
  type ChatGateway,
  type ChatGatewayOptions,
} from '../../support/chat-gateway.ts';
import { eventually } from '../../support/wait.ts';

/** How a completion ends for its client, and in the ledger. */
interface Ending {
  /** The answer's status; a stream that began has 200, and its end is compared separately. */
  readonly whole: number;
  readonly stream: number | 'error_event' | 'clean';
  /** The stream's ending in the ledger. An answer without delivered content is not charged. */
  readonly ledger: 'completed' | 'cut' | 'failed';
  readonly isEstimate?: boolean;
}

const failed = (status: number): Ending => ({ whole: status, stream: status, ledger: 'failed' });
const good: Ending = { whole: 200, stream: 'clean', ledger: 'completed' };
const brokenOff = (whole: number): Ending => ({
  whole,
  stream: 'error_event',
  ledger: 'cut',
  isEstimate: true,
});

/** One fault of each kind of ending: as what each fault is read is in test/chat/peers/upstream/faults.test.ts. */
const endings: Partial<Readonly<Record<Fault, Ending>>> = {
  status_503: failed(502),
  rate_limited: failed(503),
  bad_request: failed(400),
  hang: failed(504),
  html: failed(502),
  slow_first_byte: good,
  no_done: good,
  missing_usage: { ...good, isEstimate: true },
  choices_null: { ...good, whole: 502 },
  cut_after_first_token: brokenOff(502),
  stall_mid_stream: brokenOff(504),
};

/** Only an upstream that stops in between meets a limit, and no other one: a busy machine may be as slow without it. */
const limits: Partial<Record<Fault, ChatGatewayOptions>> = {
  hang: { upstream: 'timeout_ms = 300' },
  stall_mid_stream: { upstream: 'timeout_ms = 30_000', constants: { upstream: { idleOfTimeout: 0.01 } } },
};

/** Every completion has its end in the ledger, and no credit is held. */
async function settled(gateway: ChatGateway): Promise<EventData<'chat_completed'> | undefined> {
  const { database } = gateway;
  await eventually(async () => {
    const events = await allEvents(database.db);
    const begun = events.filter(({ type }) => type === 'chat_admitted').length;
    const ended = events.filter(({ type }) => type === 'chat_completed' || type === 'chat_failed').length;
    expect(ended).toBe(begun);
  });
  await expectBooks(database);
  const { rows } = await database.pool.query('select * from tollbook.chat_hold');
  expect(rows).toEqual([]);
  const last = (await allEvents(database.db)).findLast(({ type }) => type === 'chat_completed');
  return last?.type === 'chat_completed' ? last.data : undefined;
}

/** What a whole answer was, in the words of its ending. */
async function wholeOf(answer: Response): Promise<string> {
  const body = (await answer.json()) as {
    choices?: [{ message: { content: string } }];
    error?: { message: unknown; code: unknown };
  };
  if (answer.status === 200) return body.choices?.[0].message.content.includes('hello') ? 'good' : 'bad';
  const isError = typeof body.error?.message === 'string' && typeof body.error.code === 'string';
  return isError ? 'error' : 'no error';
}

/** How a stream ended: by `[DONE]`, by an error event and nothing behind it, or not at all. */
async function streamOf(answer: Response): Promise<Ending['stream']> {
  const text = await answer.text();
  if (answer.status !== 200) return answer.status;
  if (text.endsWith('data: [DONE]\n\n')) return 'clean';
  const last = text.trimEnd().split('\n\n').at(-1) ?? '';
  const { error } = JSON.parse(last.replace('data: ', '')) as { error?: { type: string } };
  return error?.type === 'server_error' && !text.includes('[DONE]') ? 'error_event' : 0;
}

async function startOne(fault: Fault) {
  const gateway = await startChatGateway({ ...limits[fault], model: { slowMs: 100 } });
  return { gateway, key: { authorization: `Bearer ${await gateway.key()}` } };
}

describe.each(Object.entries(endings) as [Fault, Ending][])('an upstream that has %s', (fault, ending) => {
  test('ends a whole answer with the expected status and charge', async () => {
    const { gateway, key } = await startOne(fault);
    const answer = await gateway.post(ask(`hello fault:${fault}`), key);
    expect(answer.status).toBe(ending.whole);
    expect(await wholeOf(answer)).toBe(ending.whole === 200 ? 'good' : 'error');
    const charged = (await settled(gateway))?.is_estimate;
    expect(charged).toBe(ending.whole === 200 ? (ending.isEstimate ?? false) : undefined);
  });

  test('ends a stream with the expected ending and charge', async () => {
    const { gateway, key } = await startOne(fault);
    const answer = await gateway.post({ ...ask(`hello fault:${fault}`), stream: true }, key);
    expect(await streamOf(answer)).toBe(ending.stream);
    const completed = await settled(gateway);
    expect(completed?.ending ?? 'failed').toBe(ending.ledger);
    expect(completed?.is_estimate ?? false).toBe(ending.isEstimate ?? false);
  });
});

async function startTwo(fault: Fault) {
  const second = await startModelUpstream({ name: 'second', port: 0 });
  const gateway = await startChatGateway({
    ...limits[fault],
    model: { name: 'first' },
    tables: `
[[upstreams]]
name = "second"
base_url = "${second.url}"

[[models]]
name = "both"
upstreams = [{ name = "model", model = "devnet-small" }, { name = "second", model = "devnet-small" }]
free_tier = true
context_length = 1_000
max_output_tokens = 100
`,
  });
  return { gateway, second };
}

describe('with a second upstream', () => {
  const beforeFirstByte = (Object.keys(endings) as Fault[]).filter(
    (fault) => endings[fault]?.ledger === 'failed' && fault !== 'bad_request',
  );

  test.each(beforeFirstByte)('a client does not notice that the first upstream has %s', async (fault) => {
    const { gateway, second } = await startTwo(fault);
    for (const stream of [false, true]) {
      const answer = await gateway.post({ ...ask(`hello fault:${fault}@first`, 'both'), stream });
      expect(answer.status).toBe(200);
      expect(await answer.text()).toContain('hello');
    }
    expect(second.calls.length).toBeGreaterThanOrEqual(2);
    await settled(gateway);
    await second.close();
  });

  test('an invalid request is sent to one upstream only', async () => {
    const { gateway, second } = await startTwo('bad_request');
    const answer = await gateway.post(ask('hello fault:bad_request', 'both'));
    expect(answer.status).toBe(400);
    expect(gateway.model.calls.length + second.calls.length).toBe(1);
    await second.close();
  });
});

test('the failing requests of one caller do not close a model to other callers', async () => {
  const gateway = await startChatGateway();
  const [mallory, ann] = [await gateway.key(), await gateway.key()].map((key) => ({
    authorization: `Bearer ${key}`,
  }));
  for (let time = 0; time < 8; time++)
    expect((await gateway.post(ask('fault:status_500'), mallory)).status).toBe(502);
  expect((await gateway.post(ask('hello'), ann)).status).toBe(200);
});

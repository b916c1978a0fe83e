import { expect, test } from 'vitest';
import { parseTraceparent } from '../../../src/base/values/traceparent.ts';
import { readLeaves } from '../../../src/audit/store/log.ts';
import { createRunner, job, type JobCall, RetryLater } from '../../../src/runner/index.ts';
import { behindProxy, reaches } from '../../payments/use-cases/settlement-support.ts';
import { ask, paidModel, startChatGateway } from '../../support/chat-gateway.ts';
import { type Collector, type ReceivedSpan, startCollector } from '../../support/collector.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import {
  runnerSecret,
  startTestGateway,
  type TestGateway,
  startWithDatabase,
} from '../../support/gateway.ts';
import { logLines } from '../../support/log-lines.ts';
import { header, payFor, payer, quoteAndSign } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';
import { soonMs } from '../../support/time-limits.ts';

const chain = useChain();
const path = '/x402/jobs/1/0';
const route = 'POST /x402/jobs/:service_id/:job_index';
const client = { traceId: '4b'.repeat(16), spanId: '5c'.repeat(8) };
const traceparent = `00-${client.traceId}-${client.spanId}-01`;
const traces = ({ endpoint }: Pick<Collector, 'endpoint'>, more = ''): string =>
  `[traces]\nendpoint = "${endpoint}"\n${more}`;

/** Signs a payment and sends it with a client's span. */
async function payTraced(gateway: TestGateway, body = 'x') {
  const payment = await quoteAndSign(gateway, path, body);
  return gateway.post(path, { body, headers: { ...header(payment), traceparent } });
}

/** A runner of the library whose handler shows the calls that it got. */
function libraryRunner(handle: (call: JobCall) => string) {
  const calls: JobCall[] = [];
  const on = {
    x402: (call: JobCall) => {
      calls.push(call);
      return handle(call);
    },
  };
  const runner = createRunner({ jobs: [job({ serviceId: 1, jobIndex: 0, on })] });
  return { runner, calls, [Symbol.asyncDispose]: () => runner.stop({ graceMs: 0 }) };
}

const named = ({ spans }: Collector, name: string): ReceivedSpan[] =>
  spans.filter((span) => span.name === name);
const only = (collector: Collector, name: string): ReceivedSpan => {
  const found = named(collector, name);
  expect(found.map((span) => span.name)).toEqual([name]);
  return found[0] as ReceivedSpan;
};

test('one paid request is one trace, from the client through verify, settle, confirm and the appends to the runner, which gets its span', async () => {
  await using collector = await startCollector();
  await using library = libraryRunner(() => 'done');
  const { url } = await library.runner.listen({ port: 0, secret: runnerSecret });
  const log = logLines();
  const gateway = await startTestGateway({
    database: await createDatabase(),
    chain,
    runnerUrl: url,
    logger: log.logger,
    top: 'ledger_name = "books"',
    tables: traces(collector, 'headers = "env:OTLP_HEADERS"'),
    env: { OTLP_HEADERS: 'x-team=the%20key' },
  });
  const paid = await payTraced(gateway);
  expect(paid.status).toBe(202);
  await eventually(() => expect(library.calls).toHaveLength(1));
  await gateway.stop();

  expect(collector.requests[0]).toMatchObject({ path: '/v1/traces', headers: { 'x-team': 'the key' } });
  expect(collector.resource).toMatchObject({ 'service.name': 'books' });
  const mine = collector.spans.filter(({ traceId }) => traceId === client.traceId);
  const request = mine.find(({ name }) => name === route);
  expect(request).toMatchObject({
    parentSpanId: client.spanId,
    kind: 2,
    attributes: { 'http.request.method': 'POST', 'http.response.status_code': 202 },
  });
  const below = mine.filter(({ parentSpanId }) => parentSpanId === request?.spanId);
  expect(below.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['look up payment', 'verify', 'settle', 'confirm', 'append', 'deliver call']),
  );
  const appended = named(collector, 'append').map(({ attributes }) => attributes['tollbook.events']);
  expect(appended).toEqual([
    'quote_issued',
    'payment_verified settlement_started',
    'payment_settled enqueued',
    'delivered completed',
  ]);
  const deliver = only(collector, 'deliver call');
  expect(deliver.attributes).toMatchObject({ 'tollbook.attempt': 1, 'tollbook.call_id': paid.json.call_id });
  const given = parseTraceparent(library.calls[0]?.traceparent);
  expect(given).toEqual({ traceId: client.traceId, spanId: deliver.spanId, isSampled: true });
  const line = log.lines.find(({ msg, status }) => msg === 'request' && status === 202);
  expect(line).toMatchObject({
    trace_id: client.traceId,
    parent_id: client.spanId,
    span_id: request?.spanId,
  });
});

test('a polling runner gets its span with the call, its result is in the same trace, and a retry is a separate trace that names the request', async () => {
  await using collector = await startCollector();
  let attempts = 0;
  await using library = libraryRunner(() => {
    attempts += 1;
    if (attempts === 1) throw new RetryLater();
    return 'done';
  });
  const { gateway } = await startWithDatabase({
    chain,
    tables: `${traces(collector)}
[[runners]]
name = "poller"
services = [1]
mode = "lease"
token = "env:RUNNER_TOKEN"`,
    constants: { delivery: { backoffCapMs: 1 } },
  });
  const paid = await payTraced(gateway);
  expect(paid.status).toBe(202);
  void library.runner.poll({ gatewayUrl: gateway.url, token: runnerSecret, waitSecs: 1 });
  await eventually(async () =>
    expect((await gateway.get(`/x402/receipts/${paid.json.quote_digest}`)).json).toMatchObject({
      state: 'completed',
    }),
  );
  await library.runner.stop({ graceMs: 0 });
  await gateway.stop();

  const [first, second] = named(collector, 'deliver call');
  const request = collector.spans.find(({ parentSpanId }) => parentSpanId === client.spanId);
  expect(first).toMatchObject({ traceId: client.traceId, parentSpanId: request?.spanId, links: [] });
  expect(second?.traceId).not.toBe(client.traceId);
  expect(second?.parentSpanId).toBeUndefined();
  expect(second?.links).toEqual([{ traceId: client.traceId, spanId: request?.spanId }]);
  expect(library.calls.map((call) => parseTraceparent(call.traceparent)?.spanId)).toEqual([
    first?.spanId,
    second?.spanId,
  ]);
  expect(only(collector, 'POST /runner/calls/:call_id/fail')).toMatchObject({
    traceId: client.traceId,
    parentSpanId: first?.spanId,
  });
  expect(only(collector, 'POST /runner/calls/:call_id/complete')).toMatchObject({
    traceId: second?.traceId,
    parentSpanId: second?.spanId,
  });
});

test('each look after a settlement of unknown outcome is a separate trace that names the request', async () => {
  await using collector = await startCollector();
  const { proxy, gateway, hurry } = await behindProxy(chain, { tables: traces(collector) });
  const payment = await quoteAndSign(gateway, path, 'x');
  proxy.faults.settle = 'cut_after';
  const paid = await gateway.post(path, { body: 'x', headers: { ...header(payment), traceparent } });
  expect(paid.status).toBe(503);
  await hurry();
  await reaches(gateway, payment, 'completed');
  await gateway.stop();

  const request = collector.spans.find(({ parentSpanId }) => parentSpanId === client.spanId);
  expect(request?.attributes).toMatchObject({
    'tollbook.code': 'settlement_pending',
    'error.type': '503',
  });
  expect(only(collector, 'settle')).toMatchObject({
    traceId: client.traceId,
    status: { code: 2 },
    attributes: { 'tollbook.outcome': 'unknown', 'error.type': 'unknown' },
  });
  const looks = named(collector, 'resolve settlement');
  const links = looks.map((look) => look.links);
  expect(links).toEqual(looks.map(() => [{ traceId: client.traceId, spanId: request?.spanId }]));
  const settled = named(collector, 'append').find(
    ({ attributes }) => attributes['tollbook.events'] === 'payment_settled enqueued',
  );
  expect(looks.map(({ spanId }) => spanId)).toContain(settled?.parentSpanId);
  expect(only(collector, 'deliver call').parentSpanId).toBe(request?.spanId);
});

/** All that the ledger hashes. */
async function leavesOf(database: TestDatabase): Promise<string> {
  return (await readLeaves(database.pool, 0, 1_000)).join('\n');
}

test('a trace has no wallet, digest, secret, path or body, and the ledger nothing of a trace', async () => {
  await using collector = await startCollector();
  const { database, gateway } = await startWithDatabase({
    chain,
    top: 'quote_key = "env:QUOTE_KEY"',
    tables: traces(collector),
    env: { QUOTE_KEY: 'canary-of-the-key-of-quotes-2d7b-and-more' },
  });
  const payment = await quoteAndSign(gateway, path, 'canary-of-a-body');
  const paid = await gateway.post(path, {
    body: 'canary-of-a-body',
    headers: { ...header(payment), traceparent, 'x-net-caller': 'canary-of-a-header' },
  });
  expect(paid.status).toBe(202);
  const { quote_digest: digest, receipt_token: token } = paid.json;
  await gateway.get(`/x402/receipts/${digest}?canary-of-a-query`, { authorization: `Bearer ${token}` });
  await gateway.get(`/nowhere/canary-of-a-path/${token}`);
  await gateway.get('/x402/ready');
  const kept = await database.db.selectFrom('tollbook.call').select('traceparent').execute();
  await gateway.stop();
  const sent = collector.requests.map(({ body }) => body).join('\n');
  expect(collector.spans.map(({ name }) => name)).toEqual(
    expect.arrayContaining([route, 'GET /x402/receipts/:quote_digest', 'GET']),
  );
  expect(sent).not.toContain('ready');
  const secrets = [payer.address, digest, token, 'canary', paid.json.payment.transaction, chain.rpcUrl];
  for (const secret of [...secrets, header(payment)['payment-signature']])
    expect(sent.toLowerCase()).not.toContain(String(secret).toLowerCase());
  expect(parseTraceparent(kept[0]?.traceparent)?.traceId).toBe(client.traceId);
  const leaves = await leavesOf(database);
  expect(leaves).toContain('settlement_started');
  expect(leaves).not.toContain(client.traceId);
  expect(leaves).not.toContain('traceparent');
});

test('a trace that its client does not want recorded is not, and its runner learns so', async () => {
  await using collector = await startCollector();
  await using library = libraryRunner(() => 'done');
  const { url } = await library.runner.listen({ port: 0, secret: runnerSecret });
  const gateway = await startTestGateway({
    database: await createDatabase(),
    chain,
    runnerUrl: url,
    tables: traces(collector),
  });
  const payment = await quoteAndSign(gateway, path, 'x');
  const unsampled = traceparent.replace(/01$/, '00');
  await gateway.post(path, { body: 'x', headers: { ...header(payment), traceparent: unsampled } });
  await eventually(() => expect(library.calls).toHaveLength(1));
  await gateway.stop();
  expect(parseTraceparent(library.calls[0]?.traceparent)).toMatchObject({
    traceId: client.traceId,
    isSampled: false,
  });
  expect(collector.spans.filter(({ traceId }) => traceId === client.traceId)).toEqual([]);
});

test.each([
  [503, 'status_503'],
  ['never', 'timeout'],
] as const)(
  'a collector that answers %s neither delays nor fails a payment, is logged once, and holds up a shutdown for a bounded time',
  async (status, cause) => {
    await using collector = await startCollector(status);
    const log = logLines();
    const gateway = await startTestGateway({
      database: await createDatabase(),
      chain,
      logger: log.logger,
      tables: traces(collector),
    });
    expect((await payFor(gateway, path)).status).toBe(202);
    const startedMs = performance.now();
    await gateway.stop();
    expect(performance.now() - startedMs).toBeLessThan(soonMs(2_000));
    const lines = log.lines.filter(({ msg }) => msg.startsWith('the collector takes no traces'));
    expect(lines).toMatchObject([{ level: 40, cause }]);
  },
);

test.each([false, true])(
  'a completion is a trace of its admission, its upstream by the names of generative AI, and its settlement (stream: %s)',
  async (stream) => {
    await using collector = await startCollector();
    const gateway = await startChatGateway({ tables: traces(collector) });
    const answer = await gateway.post(
      { ...ask('canary-of-a-prompt'), stream },
      { authorization: `Bearer ${await gateway.key()}`, traceparent },
    );
    await answer.text();
    await gateway.stop();
    const mine = collector.spans.filter(({ traceId }) => traceId === client.traceId);
    expect(mine).toHaveLength(collector.spans.length);
    const request = only(collector, 'POST /v1/chat/completions');
    for (const name of ['admit completion', `chat ${paidModel}`, 'settle completion'])
      expect(only(collector, name).parentSpanId).toBe(request.spanId);
    const { attributes, startTimeUnixNano, endTimeUnixNano } = only(collector, `chat ${paidModel}`);
    expect(attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'model',
      'gen_ai.request.model': paidModel,
      'gen_ai.usage.input_tokens': expect.any(Number) as number,
      'gen_ai.usage.output_tokens': expect.any(Number) as number,
    });
    expect(BigInt(endTimeUnixNano)).toBeGreaterThan(BigInt(startTimeUnixNano));
    const appends = named(collector, 'append');
    expect(appends.map(({ parentSpanId }) => parentSpanId)).toEqual([
      only(collector, 'admit completion').spanId,
      only(collector, 'settle completion').spanId,
    ]);
    expect(collector.requests.map(({ body }) => body).join()).not.toContain('canary');
  },
);

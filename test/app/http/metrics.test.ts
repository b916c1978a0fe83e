import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { payForOneJob } from '../../../src/devnet/client.ts';
import { startEchoRunner } from '../../../src/devnet/runner.ts';
import { freePort } from '../../../src/devnet/ports.ts';
import { ask, paidModel, startChatGateway } from '../../support/chat-gateway.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { runnerSecret, startTestGateway } from '../../support/gateway.ts';
import { isInstalled, packageEnvironment } from '../../support/installed.ts';
import { eventually } from '../../support/wait.ts';
import { readPage } from '../../support/pages.ts';
import { payer } from '../../support/payer.ts';

const chain = useChain();
const token = 'a-metrics-token-of-more-than-enough-length';
const hasPromtool = isInstalled('promtool');
const absence = hasPromtool ? '' : ': NOT CHECKED, PROMTOOL IS NOT INSTALLED (apt-get install prometheus)';
if (absence) process.stderr.write(`\n*** THE METRICS' NAMES${absence}\n\n`);

/** The values of a metric by its labels, as they stand in the text. */
function valuesOf(text: string, name: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(name.length, at), Number(line.slice(at + 1))];
    }),
  );
}

async function paidGateway(tables: string) {
  const database = await createDatabase();
  const runner = await startEchoRunner({ secret: runnerSecret, port: 0 });
  const gateway = await startTestGateway({
    database,
    chain,
    runnerUrl: runner.url,
    tables,
    env: { METRICS_TOKEN: token },
  });
  const paid = await payForOneJob({
    gatewayUrl: gateway.url,
    privateKey: devnetKeys.payer,
    serviceId: 1,
    jobIndex: 0,
    body: Buffer.from('{}'),
    contentType: 'application/json',
  });
  return { database, gateway, paid, [Symbol.asyncDispose]: () => runner.close() };
}

test('a scrape with the token shows requests by route, settlements, appends, peers and the process, and names no wallet or payment', async () => {
  await using sold = await paidGateway('[metrics]\ntoken = "env:METRICS_TOKEN"');
  const { gateway, paid } = sold;
  for (const authorization of [undefined, 'Bearer wrong', `Bearer ${token} `.repeat(2)]) {
    const refused = await gateway.get('/metrics', authorization === undefined ? {} : { authorization });
    expect([refused.status, refused.json]).toEqual([401, expect.objectContaining({ code: 'unauthorized' })]);
  }
  await gateway.get('/nowhere/0x1234');
  const { status, text, headers } = await gateway.get('/metrics', { authorization: `Bearer ${token}` });
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
  expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  const requests = valuesOf(text, 'http_server_request_duration_seconds_count');
  const job = 'http_request_method="POST",http_route="/x402/jobs/:service_id/:job_index"';
  expect(requests.get(`{${job},http_response_status_code="402"}`)).toBe(1);
  expect(requests.get(`{${job},http_response_status_code="202"}`)).toBe(1);
  expect(requests.get('{http_request_method="GET",http_route="",http_response_status_code="404"}')).toBe(1);
  const settlements = valuesOf(text, 'tollbook_settlements_total');
  expect(settlements.get('{outcome="settled"}')).toBe(1);
  for (const outcome of ['unknown', 'failed', 'disproved', 'reorged', 'resolved_by_operator'])
    expect([outcome, settlements.get(`{outcome="${outcome}"}`)]).toEqual([outcome, 0]);
  expect(valuesOf(text, 'tollbook_events_appended_total').get('{type="settlement_started"}')).toBe(1);
  const peers = valuesOf(text, 'tollbook_peer_request_duration_seconds_count');
  expect(peers.get('{peer="facilitator",operation="settle",outcome="settled"}')).toBe(1);
  expect(peers.get('{peer="chain",name="eip155:84532",operation="confirm",outcome="paid"}')).toBe(1);
  expect(peers.get('{peer="runner",name="runner-1",operation="push",outcome="completed"}')).toBe(1);
  for (const name of ['lane_batch_commands', 'lane_append_duration_seconds', 'lane_wait_duration_seconds'])
    expect(valuesOf(text, `tollbook_${name}_count`).get('')).toBeGreaterThan(0);
  for (const name of ['tollbook_ledger_halted', 'tollbook_ledger_unreachable_seconds'])
    expect(valuesOf(text, name).get('')).toBe(0);
  expect(valuesOf(text, 'tollbook_ledger_seq').get('')).toBeGreaterThan(2);
  expect(valuesOf(text, 'nodejs_eventloop_lag_p99_seconds').get('')).toBeGreaterThan(0);
  expect([...valuesOf(text, 'tollbook_build_info').values()]).toEqual([1]);
  expect(valuesOf(text, 'tollbook_facilitator_circuit_open').get('')).toBe(0);
  for (const name of ['calls_dead', 'settlements_open', 'settlement_oldest_open_seconds'])
    expect(valuesOf(text, `tollbook_${name}`).get('')).toBe(0);
  expect(valuesOf(text, 'tollbook_figures_age_seconds').get('{part="calls"}')).toBeLessThan(30);
  const documented = readPage('docs/operations/metrics.md').text;
  const own = [...text.matchAll(/^# TYPE ((?:tollbook|http|gen_ai)_\w+) /gm)].map(([, name = '']) => name);
  expect(own.filter((name) => !documented.includes(`\`${name}\``))).toEqual([]);
  for (const secret of [payer.address, paid.body.quote_digest, paid.transaction, '0x1234', token])
    expect(text.toLowerCase()).not.toContain(secret.toLowerCase());
});

test('a scrape waits for no database', async () => {
  await using sold = await paidGateway('[metrics]\ntoken = "env:METRICS_TOKEN"');
  await sold.database.asOwner(async (owner) => {
    await owner.query(
      'begin; lock table tollbook.call, tollbook.lane, tollbook.event in access exclusive mode',
    );
    const { status, text } = await sold.gateway.get('/metrics', { authorization: `Bearer ${token}` });
    expect(status).toBe(200);
    expect(valuesOf(text, 'tollbook_settlements_total').get('{outcome="settled"}')).toBe(1);
    await owner.query('rollback');
  });
});

test('a completion counts its tokens and times by model and upstream, as OpenTelemetry names them', async () => {
  const gateway = await startChatGateway({
    tables: '[metrics]\ntoken = "env:METRICS_TOKEN"',
    env: { METRICS_TOKEN: token },
  });
  const completion = await gateway.client(await gateway.key()).chat.completions.create(ask('hello'));
  const { prompt_tokens: input = 0, completion_tokens: output = 0 } = completion.usage ?? {};
  const labels = `gen_ai_operation_name="chat",gen_ai_provider_name="model",gen_ai_request_model="${paidModel}"`;
  await eventually(async () => {
    const text = await (await gateway.get('/metrics', token)).text();
    const sums = valuesOf(text, 'gen_ai_client_token_usage_sum');
    expect(sums.get(`{${labels},gen_ai_token_type="input"}`)).toBe(input);
    expect(sums.get(`{${labels},gen_ai_token_type="output"}`)).toBe(output);
    for (const name of ['operation_duration', 'operation_time_to_first_chunk'])
      expect(valuesOf(text, `gen_ai_client_${name}_seconds_count`).get(`{${labels}}`)).toBe(1);
    expect(valuesOf(text, 'tollbook_model_up').get(`{model="${paidModel}"}`)).toBe(1);
    expect(valuesOf(text, 'tollbook_holds').get('')).toBe(0);
    // no spends are accepted: no key, and no alert about its ether
    expect(valuesOf(text, 'tollbook_gas_affordable_transactions').size).toBe(0);
    const upstream = '{peer="upstream",name="model",operation="complete",outcome="completed"}';
    expect(valuesOf(text, 'tollbook_peer_request_duration_seconds_count').get(upstream)).toBe(1);
  });
  expect(input * output).toBeGreaterThan(0);
});

test.skipIf(!hasPromtool)(
  `promtool finds nothing wrong with the names and the format of the metrics on a port of their own${absence}`,
  async () => {
    const port = await freePort();
    await using sold = await paidGateway(`[metrics]\nbind_address = "127.0.0.1:${port}"`);
    expect((await sold.gateway.get('/metrics')).status).toBe(404);
    const scrape = await fetch(`http://127.0.0.1:${port}/metrics`);
    expect(scrape.status).toBe(200);
    expect((await fetch(`http://127.0.0.1:${port}/x402/health`)).status).toBe(404);
    const complaints = execFileSync('promtool', ['check', 'metrics'], {
      input: await scrape.text(),
      encoding: 'utf8',
      env: packageEnvironment(),
    });
    expect(complaints).toBe('');
  },
);

import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { startModelUpstream } from '../../../src/devnet/model-upstream.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { documentOf } from '../../support/documented.ts';
import { startTestGateway, testConfig, startWithDatabase } from '../../support/gateway.ts';
import { allEvents } from '../../support/invariants.ts';
import { header, quoteAndSign } from '../../support/payer.ts';
import { ask, freeModel, oneModel, startChatGateway } from '../../support/chat-gateway.ts';
import { eventually } from '../../support/wait.ts';
import { listening } from '../../support/listening.ts';

const chain = useChain();
const bothOn = 'features = ["x402", "chat"]';
const chat = '/v1/chat/completions';
const json = { 'content-type': 'application/json' };

const nowhere = 'http://127.0.0.1:9/v1';

/** A gateway with both features. */
async function startBoth(upstreamUrl?: string) {
  const model = await startModelUpstream({ port: 0 });
  onTestFinished(() => model.close());
  const { database, gateway } = await startWithDatabase({
    chain,
    top: bothOn,
    tables: oneModel(upstreamUrl ?? model.url),
  });
  return { gateway, database };
}

test('a gateway with both features has one ledger and one OpenAPI document', async () => {
  const { gateway, database } = await startBoth();
  const check = await documentOf(gateway);
  const payment = await quoteAndSign(gateway, '/x402/jobs/1/0', 'x');
  expect((await gateway.post('/x402/jobs/1/0', { body: 'x', headers: header(payment) })).status).toBe(202);
  const answer = await gateway.post(chat, { body: JSON.stringify(ask('hello', freeModel)), headers: json });
  expect([answer.status, check('POST', chat, answer)]).toEqual([200, []]);
  await eventually(async () => {
    const types = (await allEvents(database.db)).map(({ type }) => type);
    expect(types).toEqual(expect.arrayContaining(['payment_settled', 'enqueued', 'chat_completed']));
  });
});

test('a reload of both features changes both or neither', async () => {
  const { gateway, database } = await startBoth();
  const jobsOnly = await testConfig({ database, chain });
  await expect(gateway.reload(jobsOnly)).rejects.toThrow('switching off the feature chat requires a restart');
  expect(await allEvents(database.db)).toEqual([]);
  const tables = oneModel(nowhere);
  expect(await gateway.reload(await testConfig({ database, chain, top: bothOn, tables }))).toEqual([]);
  expect((await allEvents(database.db)).map(({ type }) => type)).toEqual([
    'operator_config_loaded',
    'operator_models_loaded',
  ]);
});

test('a feature that is off has no paths and no error format', async () => {
  const jobs = await startTestGateway({ database: await createDatabase(), chain });
  for (const path of ['/v1/models', chat, '/v1/%zz']) {
    const answer = await jobs.get(path);
    expect(answer.json).toEqual({ error: expect.any(String), code: expect.any(String) });
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  }
  const models = await startChatGateway();
  for (const path of ['/x402/health', '/x402/ready', '/x402/stats', '/x402/jobs/1/0/price', '/runner/leases'])
    expect((await models.get(path)).status).toBe(404);
  const { paths } = (await (await models.get('/openapi.json')).json()) as { paths: object };
  expect(Object.keys(paths).filter((path) => path.startsWith('/x402'))).toEqual([]);
  expect((await models.get('/docs')).status).toBe(200);
});

test('while paid jobs are off, a configuration with all their keys contacts no facilitator, chain, runner or discovery service, and has no path of theirs', async () => {
  const connections: string[] = [];
  const peer = (name: string) => listening(createServer().on('connection', () => connections.push(name)));
  const facilitatorUrl = await peer('facilitator');
  const [rpcUrl, runnerUrl] = [await peer('rpc'), await peer('runner')];
  const watched = `[discovery]\nurl = "${await peer('discovery service')}"\n`;
  const gateway = await startTestGateway({
    database: await createDatabase(),
    chain: { ...chain, rpcUrl },
    facilitatorUrl,
    runnerUrl,
    top: 'features = ["chat"]',
    tables: watched + oneModel(nowhere),
  });
  const { paths } = (await gateway.get('/openapi.json')).json;
  expect(Object.keys(paths).filter((path) => /^\/(x402|runner|llms|\.well-known)/.test(path))).toEqual([]);
  for (const path of ['/x402/jobs', '/.well-known/x402', '/llms.txt'])
    expect((await gateway.get(path)).status).toBe(404);
  expect((await gateway.post('/x402/jobs/1/0', { body: 'x' })).status).toBe(404);
  // the state of every peer that is watched has been asked for by now
  await eventually(async () => expect((await gateway.get('/status')).json.chat).toBeDefined());
  expect(await gateway.stop()).toBeDefined();
  expect(connections).toEqual([]);
});

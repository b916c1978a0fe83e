import { primaryOnly } from '../../../src/ledger/use-cases/replicas.ts';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import packageJson from '../../../package.json' with { type: 'json' };
import { refusals } from '../../../src/base/errors/refusal.ts';
import { composeFeatures, composeRecorders } from '../../../src/app/features.ts';
import { createApp } from '../../../src/ledger/http/app.ts';
import { createRequestBodies } from '../../../src/base/http/request-bodies.ts';
import {
  openApiDocument,
  operationsOf,
  type Part,
  paidRouteCodes,
  routelessCodes,
} from '../../../src/app/openapi/document.ts';
import { createBudget } from '../../../src/base/runtime/budget.ts';
import { openLane } from '../../../src/ledger/store/lane.ts';
import { gatewayStatusRoutes } from '../../../src/accounts/http/gateway-status.ts';
import { referenceRoutes } from '../../../src/app/openapi/reference.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { testConfig, startWithDatabase } from '../../support/gateway.ts';
import { identitySecret } from '../../support/identity.ts';
import { testSeed } from '../../support/log.ts';
import { oneModel } from '../../support/chat-gateway.ts';
import { createReadinessChecker } from '../../../src/ledger/workers/readiness-checker.ts';

const chain = useChain();
const all: Part[] = ['x402', 'chat', 'identity', 'audit', 'log'];
const served: Part[][] = [['x402', 'audit'], ['chat', 'audit'], ['x402', 'chat', 'audit', 'log'], all];

/** Every route that these parts register, as OpenAPI writes it. */
async function registeredRoutes(names: readonly Part[]): Promise<string[]> {
  const database = await createDatabase();
  const top = `features = ${JSON.stringify(names.filter((part) => part === 'x402' || part === 'chat'))}`;
  const people = names.includes('identity') ? '[identity]\nsecret = "env:IDENTITY_SECRET"' : '';
  const log = names.includes('log') ? '[log]\norigin = "jobs.example/log"\nkey = "env:LOG_KEY"' : '';
  const tables = `${oneModel('http://127.0.0.1:1/v1')}\n${people}\n${log}`;
  const env = { IDENTITY_SECRET: identitySecret, LOG_KEY: testSeed.toString('hex') };
  const config = await testConfig({ database, chain, top, tables, env });
  const lane = openLane({ url: database.url });
  const logger = pino({ level: 'silent' });
  const bodies = createRequestBodies(config.limits.maxBodyMemoryBytes);
  const app = createApp({
    config,
    logger,
    bodies,
    requests: { open: 0 },
    draining: () => false,
    stopping: () => false,
  });
  const parts = {
    config,
    ledger: { ...database, lane },
    reads: primaryOnly,
    logger,
    bodies,
    budget: createBudget(0),
    isStopping: () => false,
    isTooLate: () => false,
    publicUrl: () => config.publicUrl,
    openApp: () => app,
    readiness: createReadinessChecker({ pool: database.pool, lane, log: logger, isDraining: () => false })
      .present,
    wrongTokens: () => new Set<string>(),
  };
  const composed = [
    ...(await Array.fromAsync(composeFeatures(parts))),
    ...(await composeRecorders(parts, () => [])),
  ];
  onTestFinished(async () => {
    await app.close();
    await Promise.all(composed.map(async (feature) => feature.stop?.()));
    await lane.close();
  });
  const routes: string[] = [];
  app.addHook('onRoute', ({ method, path }) => {
    const methods = [method].flat().filter((name) => name !== 'HEAD');
    const written = path
      .replaceAll(/:(\w+)/g, '{$1}')
      .replace('/models/*', '/models/{model}')
      .replace('/auth/*', '/auth/{action}')
      .replace('/tile/*', '/tile/{tile}');
    routes.push(...methods.map((name) => `${name} ${written}`));
  });
  for (const feature of composed) await feature.register?.(app);
  await app.register(
    gatewayStatusRoutes({ ledger: parts.ledger, workers: () => ({ ok: true }), features: () => ({}) }),
  );
  await app.register(referenceRoutes(() => config.publicUrl, names));
  await app.ready();
  return routes;
}

test.each(served)('with %s %s every route is in the document, and nothing else is', async (...features) => {
  const pages = ['', '/runners', '/reference.css', '/pages.js'].map((path) => `GET /docs${path}`);
  const documented = operationsOf(features).map(({ method, path }) => `${method.toUpperCase()} ${path}`);
  expect((await registeredRoutes(features)).toSorted()).toEqual([...documented, ...pages].toSorted());
});

test.each(served)('with %s %s the document is free of faults', async (...features) => {
  // an operation without input and token has no refusals
  const rules = { 'operation-4xx-response': 'off' } as const;
  const config = await createConfig({ extends: ['recommended-strict'], rules });
  const source = JSON.stringify(openApiDocument('https://jobs.example', features));
  const problems = await lintFromString({ source, config });
  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual(
    [],
  );
});

test('the linter does find faults', async () => {
  const config = await createConfig({ extends: ['recommended-strict'] });
  const source = JSON.stringify(openApiDocument('https://jobs.example', all)).replace(
    '"$ref":"#/components/schemas/Receipt"',
    '"$ref":"#/components/schemas/NoSuch","type":"nonsense"',
  );
  expect(await lintFromString({ source, config })).not.toEqual([]);
});

test('every code of the closed table belongs to a route, or to what comes before one', () => {
  const operations = operationsOf(all);
  const documented = new Set(operations.flatMap((operation) => operation.refusals));
  const known = new Set([...documented, ...routelessCodes, ...paidRouteCodes]);
  expect([...known].toSorted()).toEqual(Object.keys(refusals).toSorted());
  for (const { refusals: codes, errors = [] } of operations) {
    expect(new Set(codes).size).toBe(codes.length);
    expect(new Set(errors).size).toBe(errors.length);
  }
});

test('the document is of this version, and says where this gateway is reached', async () => {
  const { gateway } = await startWithDatabase({ chain });
  const { status, json, headers } = await gateway.get('/openapi.json');
  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(json).toMatchObject({
    openapi: '3.1.0',
    info: { version: packageJson.version },
    servers: [{ url: gateway.url }],
  });
  const again = await gateway.get('/openapi.json', { 'if-none-match': headers.get('etag') ?? '' });
  expect(again).toMatchObject({ status: 304, text: '' });
});

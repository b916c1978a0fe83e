import { createConfig, lintFromString } from '@redocly/openapi-core';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { refusals } from '../../src/domain/refusal.ts';
import { createApp } from '../../src/http/app.ts';
import { openApiDocument, operations, routelessCodes } from '../../src/http/openapi/document.ts';
import { openLane } from '../../src/store/lane.ts';
import { composeX402 } from '../../src/x402.ts';
import { createDatabase } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import { startTestGateway, testConfig } from '../support/gateway.ts';

const chain = useChain();

/** Every route that the feature x402 registers, as OpenAPI writes it. */
async function registeredRoutes(): Promise<string[]> {
  const database = await createDatabase();
  const config = await testConfig({ database, chain });
  if (!config.x402) throw new Error('the feature x402 is off');
  const lane = openLane({ url: database.url });
  const logger = pino({ level: 'silent' });
  const app = createApp({ config, logger, stopping: () => false });
  const feature = await composeX402({
    config,
    x402: config.x402,
    databaseUrl: database.url,
    ledger: { ...database, lane },
    logger,
    isStopping: () => false,
    publicUrl: () => config.publicUrl,
  });
  onTestFinished(async () => {
    await app.close();
    await feature.stop();
    await lane.close();
  });
  const routes: string[] = [];
  app.addHook('onRoute', ({ method, path }) => {
    const methods = [method].flat().filter((name) => name !== 'HEAD');
    routes.push(...methods.map((name) => `${name} ${path.replaceAll(/:(\w+)/g, '{$1}')}`));
  });
  await feature.register(app);
  await app.ready();
  return routes;
}

test('every route is in the document, and nothing else is', async () => {
  const pages = ['GET /docs', 'GET /docs/scalar.js'];
  const documented = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
  expect((await registeredRoutes()).toSorted()).toEqual([...documented, ...pages].toSorted());
});

test('the document is free of faults', async () => {
  // what has no input and needs no token refuses nobody
  const rules = { 'operation-4xx-response': 'off' } as const;
  const config = await createConfig({ extends: ['recommended-strict'], rules });
  const source = JSON.stringify(openApiDocument('https://jobs.example'));
  const problems = await lintFromString({ source, config });
  expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual(
    [],
  );
});

test('the linter does find faults', async () => {
  const config = await createConfig({ extends: ['recommended-strict'] });
  const source = JSON.stringify(openApiDocument('https://jobs.example')).replace(
    '"$ref":"#/components/schemas/Receipt"',
    '"$ref":"#/components/schemas/NoSuch","type":"nonsense"',
  );
  expect(await lintFromString({ source, config })).not.toEqual([]);
});

test('every code of the closed table belongs to a route, or to what comes before one', () => {
  const told = new Set(operations.flatMap((operation) => operation.refusals));
  const known = new Set([...told, ...routelessCodes]);
  expect([...known].toSorted()).toEqual(Object.keys(refusals).toSorted());
  for (const { refusals: codes } of operations) expect(new Set(codes).size).toBe(codes.length);
});

test('the document is of this version, and says where this gateway is reached', async () => {
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain });
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

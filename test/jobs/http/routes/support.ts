import type { Logger } from 'pino';
import type { ConstantChanges } from '../../../../src/base/config/constants.ts';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { UptoEvmScheme } from '@x402/evm/upto/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { header, offerOf, payer, signOffer } from '../../../support/payer.ts';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import path from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { freePort } from '../../../../src/devnet/ports.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import type { TestChain } from '../../../support/devnet.ts';
import {
  clientOf,
  configText,
  type GatewayClient,
  receiptKey,
  runnerSecret,
  startTestGateway,
  type TestGateway,
} from '../../../support/gateway.ts';
import { listening } from '../../../support/listening.ts';
import { type Program, spawnGateway, temporaryFolder } from '../../../support/program.ts';
import { eventually } from '../../../support/wait.ts';

export const routeToken = 'a-secret-of-the-test-route-of-a-length';

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

export type Answering = (
  asked: Asked,
  response: ServerResponse,
  request: IncomingMessage,
) => void | Promise<void>;

/** An HTTP API whose answers a test decides. */
export async function startApi(answering: Answering) {
  const asked: Asked[] = [];
  const api = { asked, answering, url: '' };
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const { method = '', url = '', headers, rawHeaders } = request;
      const one = { method, url, headers, rawHeaders, body: Buffer.concat(pieces).toString() };
      asked.push(one);
      void api.answering(one, response, request);
    });
    request.on('error', () => {});
  });
  api.url = await listening(server);
  return api;
}

export const json: Answering = ({ url }, response) => {
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ url, sunny: true }));
};

interface RouteTestOptions {
  readonly chain: TestChain;
  readonly upstream: string;
  readonly database?: TestDatabase;
  /** The routes' tables; by default `GET /weather/:city` for a cent. */
  readonly routes?: string;
  readonly listener?: string;
  readonly tables?: string;
  readonly facilitatorUrl?: string;
  readonly constants?: ConstantChanges;
  readonly logger?: Logger;
  /** Changes the configuration's text. */
  readonly change?: (text: string) => string;
}

export const weather = (upstream: string, more = '') => `
[[routes]]
service_id = 7
job_index = 0
methods = ["GET", "POST"]
path = "/weather/:city"
upstream = "${upstream}"
price = "0.01 USD"
token = "env:ROUTE_TOKEN"
${more}`;

/** The parts of a gateway's configuration that make it sell routes, for dollars. */
function routeTables(port: number, routes: string, listener = '', tables = '') {
  return {
    jobs: '',
    tables: `[route_listener]\nbind_address = "127.0.0.1:${port}"\n${listener}\n${routes}\n${tables}`,
  };
}

export interface RouteGateway extends TestGateway {
  readonly database: TestDatabase;
  /** Where routes are paid for. */
  readonly routesUrl: string;
  readonly paid: GatewayClient;
}

/** A gateway in front of an API, on a database of its own. */
export async function startRouteGateway({
  chain,
  upstream,
  database,
  routes = weather(upstream),
  listener = '',
  tables = '',
  facilitatorUrl,
  constants = {},
  logger,
  change,
}: RouteTestOptions): Promise<RouteGateway> {
  const own = database ?? (await createDatabase());
  const port = await freePort();
  const gateway = await startTestGateway({
    database: own,
    chain,
    ...(facilitatorUrl === undefined ? {} : { facilitatorUrl }),
    ...(logger && { logger }),
    ...(change && { change }),
    env: { ROUTE_TOKEN: routeToken },
    constants,
    ...routeTables(port, routes, listener, tables),
  });
  const { routesUrl = '' } = gateway;
  return { ...gateway, database: own, routesUrl, paid: clientOf(routesUrl) };
}

/** A gateway that sells these routes as a process of its own, once it sells them. */
export async function spawnRouteGateway(
  chain: TestChain,
  database: TestDatabase,
  routes: string,
  constants: ConstantChanges = {},
): Promise<{ readonly program: Program; readonly routesUrl: string; readonly paid: GatewayClient }> {
  const port = await freePort();
  const file = path.join(temporaryFolder(), 'tollbook.toml');
  writeFileSync(file, configText({ database, chain, ...routeTables(port, routes) }));
  const program = spawnGateway(file, constants, {
    DATABASE_URL: database.url,
    RECEIPT_KEY: receiptKey,
    ROUTE_TOKEN: routeToken,
    RUNNER_TOKEN: runnerSecret,
  });
  onTestFinished(() => program.kill('SIGKILL'));
  const routesUrl = `http://127.0.0.1:${port}`;
  const paid = clientOf(routesUrl);
  await eventually(async () => expect((await paid.get('/weather/paris')).status).toBe(402));
  return { program, routesUrl, paid };
}

/** The official client, unmodified. */
export const paidFetch = wrapFetchWithPayment(
  fetch,
  x402Client.fromConfig({
    schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(payer) }],
    spendControls: false,
  }),
);

/** The same, which also pays what an answer says that it costs. */
export const uptoFetch = wrapFetchWithPayment(
  fetch,
  x402Client.fromConfig({
    schemes: [
      { network: 'eip155:*', client: new ExactEvmScheme(payer) },
      { network: 'eip155:*', client: new UptoEvmScheme(payer) },
    ],
    spendControls: false,
  }),
);

/** The header of a payment for what a path offers. */
export async function signed(
  gateway: Pick<RouteGateway, 'paid'>,
  target: string,
): Promise<Record<string, string>> {
  return header(await signOffer(offerOf(await gateway.paid.get(target))));
}

/** The types of all events, of a ledger that both verifiers find sound. */
export async function eventTypes(gateway: RouteGateway): Promise<string[]> {
  const events = await gateway.database.asOwner((owner) => expectSoundLedger(gateway.database.db, owner));
  return events.map(({ type }) => type);
}

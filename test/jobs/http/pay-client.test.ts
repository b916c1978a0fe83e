import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { allEvents } from '../../support/invariants.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { root } from '../../support/pages.ts';
import { spawnProgram, temporaryFolder } from '../../support/program.ts';
import { startTestRunner } from '../../support/runner.ts';

const chain = useChain();

/** Passes requests on; the answer to the first one with a payment is lost. */
async function startLossyProxy(to: string): Promise<string> {
  let isLost = false;
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', headers, url = '/' } = request;
    const body = method === 'GET' ? undefined : new Uint8Array(await buffer(request));
    const { host: _, connection: __, 'content-length': ___, ...sent } = headers;
    const answer = await fetch(to + url, {
      method,
      headers: sent as Record<string, string>,
      ...(body && { body }),
    });
    const text = await answer.text();
    if ('payment-signature' in headers && !isLost) {
      isLost = true;
      request.socket.destroy();
      return;
    }
    const { 'content-encoding': ____, ...passed } = Object.fromEntries(answer.headers);
    response.writeHead(answer.status, { ...passed, 'content-length': Buffer.byteLength(text) }).end(text);
  };
  const proxy = createServer((request, response) => void pass(request, response)).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(() => {
    proxy.close().closeAllConnections();
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

test('the client of examples/pay-client.ts whose paid answer was lost gets it by the same payment, and is charged once', async () => {
  const runner = await startTestRunner(({ body }) => ({ status: 200, body: body.toString().toUpperCase() }));
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain, runnerUrl: runner.url });
  const devnet = path.join(temporaryFolder(), 'devnet.json');
  const facts = { gateway_url: await startLossyProxy(gateway.url), payer_private_key: devnetKeys.payer };
  writeFileSync(devnet, JSON.stringify(facts));
  const command = [process.execPath, 'examples/pay-client.ts', '1', '0', 'hello'];
  const { code, stdout, stderr } = await spawnProgram(command, root, { DEVNET: devnet }).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/^202 [^]*completed: HELLO\n$/);
  const settled = (await allEvents(database.db)).filter(({ type }) => type === 'payment_settled');
  expect(settled).toHaveLength(1);
});

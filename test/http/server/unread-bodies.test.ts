import { expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../../support/database.ts';
import { startTestGateway, type TestGatewayOptions } from '../../support/gateway.ts';
import { oneModel } from '../../support/chat-gateway.ts';
import { identitySecret } from '../../support/identity.ts';
import { sendHead } from '../../support/raw-request.ts';

/** Peers that do not answer: nothing here asks them. */
const nowhere = 'http://127.0.0.1:1';
const chain = {
  rpcUrl: nowhere,
  facilitatorUrl: nowhere,
  token: `0x${'1'.repeat(40)}`,
  secondToken: `0x${'2'.repeat(40)}`,
} as const;

const everything: Partial<TestGatewayOptions> = {
  top: 'features = ["jobs", "chat"]',
  tables: `${oneModel('http://127.0.0.1:1/v1')}
[identity]
secret_env = "IDENTITY_SECRET"
[[runners]]
services = [1]
mode = "lease"
token_env = "RUNNER_TOKEN"`,
  env: { IDENTITY_SECRET: identitySecret },
};

async function start(options: Partial<TestGatewayOptions> = {}) {
  return startTestGateway({ database: await createDatabase(), chain, ...options });
}

const json = { 'content-type': 'application/json', 'content-length': 30_000 };

test('a request without valid credentials is refused before its body is read', async () => {
  const gateway = await start(everything);
  const answers = await Promise.all(
    [
      '/runner/leases',
      '/runner/calls/1/extend',
      '/runner/calls/1/complete',
      '/runner/calls/1/fail',
      '/operator/dead-letters/1/requeue',
      '/operator/keys',
      '/operator/keys/1/revoke',
      '/operator/accounts/one/grants',
      '/api/keys',
    ].map(async (path) => {
      const request = await sendHead(gateway.url, path, { ...json, authorization: 'Bearer x' });
      onTestFinished(() => void request.socket.destroy());
      return [path, await request.status(1_000)];
    }),
  );
  expect(answers.filter(([, status]) => status !== 401)).toEqual([]);
});

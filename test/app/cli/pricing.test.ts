import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { bytesToHex } from 'viem/utils';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { grpcClient, operator } from '../../support/pricing.ts';
import { startTollbook, temporaryFolder, tollbook } from '../../support/program.ts';
import { runInProcess } from '../../support/run-in-process.ts';
import { eventually } from '../../support/wait.ts';

const env = { TOLLBOOK_OPERATOR_KEY: devnetKeys.payer };
const free = ['--bind', '127.0.0.1:0'];

function file(text: string): string {
  const name = path.join(temporaryFolder(), 'gateway.toml');
  writeFileSync(name, text);
  return name;
}

/** A gateway's file that no gateway would take, with the address of a peer. */
const gateway = (wei: string, peer: string) => `
facilitator_url = "${peer}"
features = ["x402"]
x402_endpoint = 1
[job_prices.1]
0 = "${wei}"
[[accepted_tokens]]
network = 7
rate = { url = "${peer}", pointer = "/rate" }
[networks."eip155:1"]
rpc_urls = ["${peer}"]
[traces]
endpoint = "${peer}"
[alerts]
webhook_url = "${peer}"
`;

/** A peer that counts its connections. */
async function startPeer(): Promise<{ url: string; contacts: Socket[] }> {
  const contacts: Socket[] = [];
  const server = createServer((socket) => void contacts.push(socket.on('error', () => {}))).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, contacts };
}

test('the command answers prices of the gateway file, whatever else it says, contacts no peer, reloads and ends at SIGTERM', async () => {
  const peer = await startPeer();
  const config = file(gateway('256', peer.url));
  const program = startTollbook(
    ['pricing', '--config', config, ...free, '--trust-proxy', '10.0.0.0/8,::1'],
    env,
  );
  const [, url = ''] = await program.says(/"url":"([^"]+)".*"msg":"listening"/);
  const ask = grpcClient(url);
  const answer = await ask();
  expect(answer.quote_details.price).toEqual(Buffer.of(1, 0));
  expect(bytesToHex(answer.operator_id)).toBe(operator.address);
  for (const field of ['settlement_options', 'x402_endpoint', 'x402_refusal'])
    expect(answer).not.toHaveProperty(field);
  writeFileSync(config, gateway('0', peer.url));
  program.kill('SIGHUP');
  await program.says(/"msg":"the configuration has mistakes; nothing was changed"/);
  writeFileSync(config, gateway('512', peer.url));
  program.kill('SIGHUP');
  await program.says(/"msg":"configuration loaded"/);
  await eventually(async () => expect((await ask()).quote_details.price).toEqual(Buffer.of(2, 0)));
  program.kill('SIGTERM');
  const { code, stdout, stderr } = await program.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('"msg":"stopped: every request has its answer"');
  expect(stdout).not.toContain(devnetKeys.payer.slice(2));
  expect(peer.contacts).toEqual([]);
});

test('all mistakes of prices and key are reported together, with their path and line, and without the key', async () => {
  const config = file('log_level = "loud"\n[job_prices.1]\n0 = "0"\n1 = 1.5\nx = "1"\n');
  const ended = await tollbook(['pricing', '--config', config], { TOLLBOOK_OPERATOR_KEY: 'dead-beef' });
  expect(ended).toMatchObject({ code: 78, stdout: '' });
  for (const words of [
    `${config}:1  log_level: must be`,
    `${config}:3  job_prices.1.0: must be above 0`,
    `${config}:4  job_prices.1.1: must be dollars`,
    `${config}:5  job_prices.1.x: is not a job index`,
    'TOLLBOOK_OPERATOR_KEY  has no private key',
  ])
    expect(ended.stderr).toContain(words);
  expect(ended.stderr).not.toContain('dead-beef');
  const none = await tollbook(['pricing', '--config', file('')], {});
  expect(none).toMatchObject({ code: 78, stderr: expect.stringContaining('no job has a price') });
  expect(none.stderr).toContain('TOLLBOOK_OPERATOR_KEY  is not set');
});

test.each([
  [[], 'name the configuration: tollbook pricing --config FILE'],
  [['--config', 'a', '--bind', '8404'], '--bind must be host:port'],
  [['--config', 'a', '--trust-proxy', '10.0.0.0/8,proxy'], '--trust-proxy has addresses or CIDR ranges'],
  [['--config', 'a', '--quote-ttl-secs', '0'], '--quote-ttl-secs is a whole number from 1 to 86400'],
  [['--config', 'a', '--x402'], "Unknown option '--x402'"],
])('wrong use is refused: %j', async (args, words) => {
  const ended = await runInProcess(['pricing', ...args], env);
  expect(ended).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(words) });
});

/**
 * `node bench/pricing.ts [ROUNDS]`: signed quotes per second of the pricing service, with and without a gateway behind it, beside services
 * of Connect and grpc-js that answer the same message with constant bytes. One load generator of grpc-js; the servers take turns.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { randomHex32 } from '../src/base/runtime/random-hex.ts';
import { say } from '../src/base/terminal/terminal.ts';
import { startLedger } from './ledger.ts';
import { cpuSecs, machineBusySecs, type Program, startProgram } from './processes.ts';
import { median, row, ruler, spread, whole } from './report.ts';

const rounds = Number(process.argv[2] ?? 5);
const runMs = 2_000;
const atOnce = 64;
const channels = 2;
const dir = path.join(import.meta.dirname, '.tollbook', `pricing-${process.pid}`);

const proto = path.join(import.meta.dirname, '../proto/tollbook/pricing/v1/pricing.proto');
const service = loadSync(proto, { keepCase: true })[
  'tollbook.pricing.v1.PricingService'
] as grpc.ServiceDefinition;
const Client = grpc.makeGenericClientConstructor(service, 'PricingService');
type Ask = (request: object, done: grpc.requestCallback<object>) => grpc.ClientUnaryCall;

/** Clients of one server; each has its own connection. */
function clientsOf(url: string): readonly grpc.Client[] {
  const options = { 'grpc.use_local_subchannel_pool': 1 };
  return Array.from(
    { length: channels },
    () => new Client(url.replace('http://', ''), grpc.credentials.createInsecure(), options),
  );
}

const askOnce = (client: grpc.Client): Promise<void> =>
  new Promise((resolve, reject) => {
    const ask = (client as unknown as Record<'GetJobPrice', Ask>).GetJobPrice.bind(client);
    ask({ service_id: 1, job_index: 0 }, (error) => (error ? reject(error) : resolve()));
  });

interface Run {
  readonly perSec: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly serverCpuUs: number;
  readonly foreignCores: number;
}

async function measure({ url, pid }: Program, databasePid: number | undefined): Promise<Run> {
  const clients = clientsOf(url);
  const times: number[] = [];
  const busySecs = (): number =>
    cpuSecs(pid) + cpuSecs(process.pid) + (databasePid ? cpuSecs(databasePid, true) : 0);
  const [cpuBefore, ownBefore, machineBefore] = [cpuSecs(pid), busySecs(), machineBusySecs()];
  const startedMs = performance.now();
  const loop = async (client: grpc.Client): Promise<void> => {
    while (performance.now() - startedMs < runMs) {
      const askedMs = performance.now();
      await askOnce(client);
      times.push(performance.now() - askedMs);
    }
  };
  await Promise.all(
    clients.flatMap((client) => Array.from({ length: atOnce / channels }, () => loop(client))),
  );
  const secs = (performance.now() - startedMs) / 1_000;
  for (const client of clients) client.close();
  times.sort((a, b) => a - b);
  const at = (share: number): number => times[Math.floor((times.length - 1) * share)] ?? 0;
  return {
    perSec: times.length / secs,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    serverCpuUs: ((cpuSecs(pid) - cpuBefore) * 1e6) / times.length,
    foreignCores: (machineBusySecs() - machineBefore - (busySecs() - ownBefore)) / secs,
  };
}

const configText = (facilitatorUrl: string): string => `
bind_address = "127.0.0.1:0"
facilitator_url = "${facilitatorUrl}"
rate_per_native_unit = "3200.00"
receipt_key = "env:RECEIPT_KEY"
log_level = "silent"
[[accepted_tokens]]
network = "eip155:8453"
asset = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
symbol = "USDC"
decimals = 6
pay_to = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"
eip712_name = "USD Coin"
eip712_version = "2"
[job_prices.1]
0 = "1000000000000000"
[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"
[[runners]]
services = [1]
mode = "lease"
token = "env:RECEIPT_KEY"
`;

mkdirSync(dir, { recursive: true });
const ledger = await startLedger(path.join(dir, 'postgres'), {});
const stub = await startProgram('facilitator.ts');
const configFile = path.join(dir, 'gateway.toml');
writeFileSync(configFile, configText(stub.url));
const servers = new Map<string, Program>();
try {
  servers.set('grpc-js, constant answer', await startProgram('pricing-server.ts', ['grpc-js']));
  servers.set('Connect, constant answer', await startProgram('peers/connect.mjs'));
  servers.set('Tollbook, signed quotes', await startProgram('pricing-server.ts', ['tollbook']));
  const sold = ['tollbook', configFile, ledger.url, randomHex32()];
  servers.set(
    'Tollbook, signed and recorded quotes of a gateway',
    await startProgram('pricing-server.ts', sold),
  );
  const runs = new Map([...servers.keys()].map((name): [string, Run[]] => [name, []]));
  // the first round warms up
  for (let round = 0; round <= rounds; round++)
    for (const [name, program] of servers) {
      const run = await measure(program, ledger.postmasterPid);
      if (round > 0) runs.get(name)?.push(run);
    }
  const columns = [
    '64 at a time',
    'quotes/s (min–max)',
    '× grpc-js',
    'p50 ms',
    'p99 ms',
    'server CPU µs/quote',
    'others, cores',
  ];
  say(row(columns));
  say(ruler(columns));
  const of = (name: string, key: keyof Run): number => median((runs.get(name) ?? []).map((run) => run[key]));
  const [first = ''] = runs.keys();
  for (const [name, all] of runs)
    say(
      row([
        name,
        spread(all.map(({ perSec }) => perSec)),
        (of(name, 'perSec') / of(first, 'perSec')).toFixed(2),
        of(name, 'p50Ms').toFixed(1),
        of(name, 'p99Ms').toFixed(1),
        whole(of(name, 'serverCpuUs')),
        of(name, 'foreignCores').toFixed(2),
      ]),
    );
} finally {
  for (const program of servers.values()) await program.stop();
  await stub.stop();
  await ledger.stop();
  rmSync(dir, { recursive: true, force: true });
}

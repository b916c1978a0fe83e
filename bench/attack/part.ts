import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { devnetAddress } from '../../src/devnet/accounts.ts';
import { freePort } from '../../src/devnet/ports.ts';
import type { Bench } from '../bench.ts';
import { readSettings, startLedger } from '../ledger.ts';
import { measure, type Measurement, type Stage, type Target } from '../measure.ts';
import { paymentGateway } from '../payment-targets.ts';
import { cpuSecs, type Program, startProgram } from '../processes.ts';
import { circumstancesOf, median, row, ruler, spread, whole } from '../report.ts';
import { type Findings, interleave } from '../rounds.ts';
import { startTollbook } from '../tollbook.ts';
import { price } from '../chat/terms.ts';
import { terms } from '../terms.ts';
import type { Attack, Attacked } from './attacker.ts';

/** What eight hostile clients send. */
interface Load {
  readonly name: string;
  readonly attack: Attack;
  /** The same requests, bytes and connections for `/x402/health`, measured just before, which it is compared with. */
  readonly base?: Load;
}

const named: readonly (readonly [name: string, attack: Attack])[] = [
  ['payments with invalid or wrapped signatures', 'signatures'],
  ['signed payments of wallets without money, no RPC', 'unfunded'],
  ['version 1 payments of amounts never offered', 'v1'],
  ['requests without a payment', 'quotes'],
  ['bodies of 64 KiB without credentials or payment, 300 slow connections', 'bodies'],
  ['chat bodies of 64 KiB to 2.5 MiB without credentials', 'chat'],
  ['forms, lists and levels of 64 KiB that parsers take long for', 'parsers'],
  ['400 connections that ask for 4 MB and read nothing', 'readers'],
  ['all of these attacks together', 'all'],
];
/** Each with its base before it: the machine's speed changes with what else it does. */
const pairOf = ([name, attack]: (typeof named)[number]): readonly Load[] => {
  const base: Load = { name: `\`/x402/health\` beside ${name}`, attack };
  return [base, { name, attack, base }];
};

interface Honest extends Measurement {
  readonly attacked: Attacked;
  /** Processor microseconds of server and PostgreSQL for one hostile request, while nothing else was sent. */
  readonly hostileCpuUs: number;
  /** Of the attackers themselves. */
  readonly sendingCpuUs: number;
  /** How long the server's event loop was blocked at most, in 99.9 % of the cases, and once. */
  readonly loop: LoopDelay;
}

interface LoopDelay {
  readonly p999Ms: number;
  readonly maxMs: number;
}

interface Scenario {
  readonly title: string;
  /** How long the attack lasts before honest clients begin, as a multiple of the time for which they pay. */
  readonly ahead: number;
  readonly concurrency: number;
  readonly secs: number;
}

/** Honest clients have their own addresses, and others in each run, so that none spends its budget: a request for an offer counts. */
const honestAddresses = (run: number): string[] =>
  Array.from({ length: 64 }, (_, at) => `127.0.${1 + (run % 200)}.${at + 1}`);
let runs = 0;
/** Models that strangers may name, pages, and a job whose input has rules. */
const strangersTables = (modelUrl: string, dir: string): string => `
[identity]
secret = "file:${path.join(dir, 'identity-secret')}"
[pages]
[job_prices.2]
0 = "${terms.priceWei}"
[[job_policies]]
service_id = 2
job_index = 0
invocation_mode = "public_paid"
input_schema_file = "${path.join(dir, 'schema.json')}"
[[runners]]
services = [2]
mode = "lease"
token = "file:${path.join(dir, 'identity-secret')}"
[[upstreams]]
name = "bench"
base_url = "${modelUrl}/v1"

[[models]]
name = "paid"
upstreams = ["bench"]
input_price = "${price.input}"
output_price = "${price.output}"
context_length = 131_072
max_output_tokens = 16_384

[[models]]
name = "free"
upstreams = ["bench"]
free_tier = true
context_length = 131_072
max_output_tokens = 16_384
`;
const inputSchema = {
  type: 'object',
  properties: { list: { type: 'array', uniqueItems: true, items: { type: 'object', required: ['b'] } } },
};
/** How long an attack lasts before anything is measured, and how long it is then measured alone. */
const leadMs = 500;
const aloneMs = 2_000;

const columns = [
  'Eight attackers send 1,000 requests or 32 MB a second',
  'paid requests/s (min–max)',
  'beside the same bytes for `/x402/health`',
  '×',
  '× by processor time',
  'p99 ms',
  'CPU µs/hostile request, for health',
  'CPU µs/hostile request',
  'event loop p99.9 ms',
  'hostile requests/s',
  'its answers',
];

interface Siege {
  readonly stage: Stage;
  readonly gateway: Target;
  readonly attacker: Program;
  readonly loopPort: number;
}

/** The gateway, what it needs, and who attacks it. */
async function startSiege(bench: Bench): Promise<Siege> {
  const ledger = await bench.keep(startLedger(path.join(bench.dir, 'pg'), {}));
  const stub = await bench.keep(startProgram('facilitator.ts', ['--funded', devnetAddress('payer')]));
  const load = await bench.keep(startProgram('load.ts'));
  const attacker = await bench.keep(startProgram('attack/attacker.ts'));
  const stage: Stage = { ledger, stub, load };
  const model = await bench.keep(startProgram('chat/model.ts'));
  const loopPort = await freePort();
  writeFileSync(path.join(bench.dir, 'identity-secret'), randomBytes(32).toString('hex'), { mode: 0o600 });
  writeFileSync(path.join(bench.dir, 'schema.json'), JSON.stringify(inputSchema));
  const options = paymentGateway(stage, true, bench.dir, '', strangersTables(model.url, bench.dir));
  const { pid, url } = await bench.keep(
    startTollbook({
      ...options,
      configText: (port) => `features = ["x402", "chat"]\n${options.configText(port)}`,
      nodeOptions: ['--import', `${new URL('loop-delay.mjs', import.meta.url).href}?port=${loopPort}`],
    }),
  );
  const gateway: Target = {
    name: 'Tollbook',
    isPeer: false,
    pid,
    url,
    offersUrl: url,
    verifies: true,
    signed: true,
  };
  return { stage, gateway, attacker, loopPort };
}

/** Honest payments while eight client addresses attack, each beside the same requests for `/x402/health`. */
export const attackPart = {
  async compare(bench: Bench): Promise<string> {
    const siege = await startSiege(bench);
    const compare = (targets: readonly Load[], ahead: number, { rounds, warmSecs, runSecs }: Bench) =>
      interleave(
        { ...bench, rounds, warmSecs },
        {
          targets,
          scenarios: [{ title: 'Paid request, 32 at a time', concurrency: 32, secs: runSecs, ahead }],
          isOf: () => true,
          measure: (target, scenario: Scenario, count) =>
            measureBeside(siege, { load: target, scenario, count }),
        },
      );
    const findings = [
      ...(await compare(named.flatMap(pairOf), 0, { ...bench, warmSecs: bench.warmSecs.slice(-1) })),
      // in all a minute, so that budgets refill while the attack lasts
      ...(await compare(named.slice(-1).flatMap(pairOf), 2.75, {
        ...bench,
        runSecs: 4 * bench.runSecs,
        warmSecs: [],
      })),
    ];
    return [
      tableOf(findings),
      '',
      circumstancesOf(bench, findings, await readSettings(siege.stage.ledger)),
      '- Attackers send at a fixed rate and share the cores, so that each attack is compared with the same requests, bytes and ' +
        'connections for `/x402/health`, sent just before. The ratio by processor time is what 1,000 requests or 32 MB a second leave ' +
        'of the cores, from their own processor time: what other programs take meanwhile does not change it.',
      '- The limits are the defaults: 600 requests per minute and client address without a settlement. The facilitator answers 500 to ' +
        'wrapped signatures, wallets without money are invalid, and the RPC answers nothing but its chain id.',
    ].join('\n');
  },

  /** What one hostile request costs, without honest clients: other programs of the machine hardly change it. */
  async profile(bench: Bench): Promise<string> {
    const siege = await startSiege(bench);
    const lines = [row(costColumns), ruler(costColumns)];
    for (const pair of named.map(pairOf)) {
      const costs: Cost[] = [];
      for (const load of pair) costs.push(await measureAlone(siege, load, bench));
      const [base, cost] = costs;
      if (base && cost) lines.push(row([pair.at(-1)?.name ?? '', ...costCellsOf(base, cost)]));
    }
    return lines.join('\n');
  },
};

const costColumns = [
  'Eight attackers send 1,000 requests or 32 MB a second',
  'due requests/s',
  'gateway µs',
  'PostgreSQL µs',
  'gateway µs, for `/x402/health`',
  'PostgreSQL µs',
  '× by processor time',
  '× of one core for the gateway',
  'its answers',
];

/** Processor microseconds of a hostile request. */
interface Cost {
  readonly gatewayUs: number;
  readonly databaseUs: number;
  readonly sendingUs: number;
  readonly attacked: Attacked;
}

/** Before it is measured, an attack lasts until budgets are spent. */
async function measureAlone(
  { stage, gateway, attacker }: Siege,
  { attack, base }: Load,
  { runSecs }: Bench,
): Promise<Cost> {
  const cpu = () =>
    [gateway.pid, stage.ledger.postmasterPid, attacker.pid].map((pid, at) => cpuSecs(pid, at === 1));
  await attacker.ask({ op: 'start', url: gateway.url, attack, isForHealth: base === undefined });
  await sleep((base === undefined ? 1 : 5) * runSecs * 1_000);
  const before = cpu();
  const startedAt = performance.now();
  await sleep(2 * runSecs * 1_000);
  const after = cpu();
  const secs = (performance.now() - startedAt) / 1_000;
  const { attacked } = await attacker.ask<{ readonly attacked: Attacked }>({ op: 'stop' });
  const usOf = (at: number): number =>
    (((after[at] ?? 0) - (before[at] ?? 0)) * 1e6) / (attacked.perSec * secs);
  return { gatewayUs: usOf(0), databaseUs: usOf(1), sendingUs: usOf(2), attacked };
}

function costCellsOf(base: Cost, cost: Cost): string[] {
  const { duePerSec } = cost.attacked;
  const left = (cores: number, us: number): number => cores - (duePerSec * us) / 1e6;
  const all = ({ gatewayUs, databaseUs, sendingUs }: Cost): number => gatewayUs + databaseUs + sendingUs;
  const cores = os.cpus().length;
  return [
    whole(duePerSec),
    whole(cost.gatewayUs),
    whole(cost.databaseUs),
    whole(base.gatewayUs),
    whole(base.databaseUs),
    (left(cores, all(cost)) / left(cores, all(base))).toFixed(2),
    (left(1, cost.gatewayUs) / left(1, base.gatewayUs)).toFixed(2),
    statusesOf([cost]),
  ];
}

async function measureBeside(
  { stage, gateway, attacker, loopPort }: Siege,
  { load, scenario, count }: { readonly load: Load; readonly scenario: Scenario; readonly count: number },
): Promise<Honest> {
  const { ledger } = stage;
  const cpu = (): number => cpuSecs(gateway.pid) + cpuSecs(ledger.postmasterPid, true);
  let aloneCpuSecs = 0;
  let [sendingCpuSecs, attackerCpuSecs] = [0, 0];
  const beside = async (): Promise<void> => {
    await attacker.ask({
      op: 'start',
      url: gateway.url,
      attack: load.attack,
      isForHealth: load.base === undefined,
    });
    await sleep(leadMs);
    const before = [cpu(), cpuSecs(attacker.pid)] as const;
    await sleep(aloneMs);
    aloneCpuSecs = cpu() - before[0];
    sendingCpuSecs = cpuSecs(attacker.pid) - before[1];
    await readLoopDelay(loopPort);
    await sleep(scenario.ahead * scenario.secs * 1_000);
    attackerCpuSecs = cpuSecs(attacker.pid);
  };
  const { concurrency } = scenario;
  const target: Target = { ...gateway, from: honestAddresses(runs++) };
  const measured = await measure(stage, target, { what: 'payments', concurrency }, count, beside);
  attackerCpuSecs = cpuSecs(attacker.pid) - attackerCpuSecs;
  const loop = await readLoopDelay(loopPort);
  const { attacked } = await attacker.ask<{ readonly attacked: Attacked }>({ op: 'stop' });
  const ofOne = (secs: number): number => (secs * 1e9) / (attacked.perSec * aloneMs);
  const attackerCores = (attackerCpuSecs * measured.perSec) / count;
  return {
    ...measured,
    foreignCores: Math.max(0, measured.foreignCores - attackerCores),
    attacked,
    hostileCpuUs: ofOne(aloneCpuSecs),
    sendingCpuUs: ofOne(sendingCpuSecs),
    loop,
  };
}

/** Since it was read before. */
async function readLoopDelay(port: number): Promise<LoopDelay> {
  return (await fetch(`http://127.0.0.1:${port}`)).json() as Promise<LoopDelay>;
}

function tableOf(findings: readonly Findings<Load, Scenario, Honest>[]): string {
  const lines = [row(columns), ruler(columns)];
  for (const { scenario, rounds } of findings)
    for (const [{ name, base }, measured] of rounds) {
      const beside = base && rounds.get(base);
      if (beside)
        lines.push(
          row([scenario.ahead === 0 ? name : `${name}, for a minute`, ...cellsOf(measured, beside)]),
        );
    }
  return lines.join('\n');
}

function cellsOf(measured: readonly Honest[], beside: readonly Honest[]): string[] {
  // by round: the machine's speed changes between rounds
  const ratio = (of: (one: Honest, base: Honest) => number): string =>
    median(measured.flatMap((one, round) => (beside[round] ? [of(one, beside[round])] : []))).toFixed(2);
  const hostileCpuUs = (all: readonly Honest[]): string => whole(median(all.map((one) => one.hostileCpuUs)));
  return [
    spread(measured.map(({ perSec }) => perSec)),
    spread(beside.map(({ perSec }) => perSec)),
    ratio((one, base) => one.perSec / base.perSec),
    (coresLeft(measured) / coresLeft(beside)).toFixed(2),
    median(measured.map(({ p99Ms }) => p99Ms)).toFixed(1),
    hostileCpuUs(beside),
    hostileCpuUs(measured),
    `${median(measured.map(({ loop }) => loop.p999Ms)).toFixed(0)} (at most ${Math.max(...measured.map(({ loop }) => loop.maxMs)).toFixed(0)})`,
    spread(measured.map(({ attacked }) => attacked.perSec)),
    statusesOf(measured),
  ];
}

/** What hostile requests leave of the machine's processors at the rate that is due. */
function coresLeft(all: readonly Honest[]): number {
  const cores = all.map((one) => (one.attacked.duePerSec * (one.hostileCpuUs + one.sendingCpuUs)) / 1e6);
  return os.cpus().length - median(cores);
}

function statusesOf(measured: readonly { readonly attacked: Attacked }[]): string {
  const sums = new Map<string, number>();
  for (const { attacked } of measured) {
    for (const [status, times] of Object.entries(attacked.byStatus))
      sums.set(status, (sums.get(status) ?? 0) + times);
  }
  const total = [...sums.values()].reduce((sum, one) => sum + one, 0);
  return [...sums]
    .toSorted((a, b) => b[1] - a[1])
    .map(([status, times]) => `${status}: ${((100 * times) / total).toFixed(1)} %`)
    .join(', ');
}

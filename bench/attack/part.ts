import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
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

interface Load {
  readonly name: string;
  readonly attack: Attack;
  /** The same bytes for `/x402/health`, which the rate of honest payments is compared with; undefined for such a load itself. */
  readonly base?: Load;
}

const health: Load = { name: '`/x402/health`', attack: 'health' };
const bodiesToHealth: Load = {
  name: '`/x402/health`, with bodies of 64 KiB, 300 slow connections',
  attack: 'bodies',
};
const chatToHealth: Load = { name: '`/x402/health`, with the bodies of the chat requests', attack: 'chat' };
const parsersToHealth: Load = {
  name: '`/x402/health`, with the bytes of the forms and lists',
  attack: 'parsers',
};
const allToHealth: Load = { name: '`/x402/health`, with the bytes of all attacks together', attack: 'all' };
const all: Load = { name: 'all of these attacks together', attack: 'all', base: allToHealth };

const loads: readonly Load[] = [
  health,
  { name: 'payments with signatures that are none, or wrapped', attack: 'signatures', base: health },
  { name: 'signed payments of wallets without money, no RPC', attack: 'unfunded', base: health },
  { name: 'version 1 payments of amounts never offered', attack: 'v1', base: health },
  { name: 'requests without a payment', attack: 'quotes', base: health },
  bodiesToHealth,
  {
    name: 'bodies of 64 KiB without credentials or payment, 300 slow connections',
    attack: 'bodies',
    base: bodiesToHealth,
  },
  chatToHealth,
  { name: 'chat bodies of 64 KiB to 2.5 MiB without credentials', attack: 'chat', base: chatToHealth },
  parsersToHealth,
  {
    name: 'forms, lists and levels of 64 KiB that parsers take long for',
    attack: 'parsers',
    base: parsersToHealth,
  },
  { name: '400 connections that ask for 4 MB and read nothing', attack: 'readers', base: health },
  allToHealth,
  all,
];

interface Honest extends Measurement {
  readonly attacked: Attacked;
  /** Processor microseconds of server and PostgreSQL for one hostile request, while nothing else was sent. */
  readonly hostileCpuUs: number;
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

/** Honest clients have addresses of their own: each has its budget. */
const honestAddresses = Array.from({ length: 64 }, (_, at) => `127.0.1.${at + 1}`);
/** The defaults, but for the quotes that the honest clients get before the clock starts. */
const limits = 'quotes_per_second = 5_000';
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
const aloneMs = 1_000;

const columns = [
  'Eight attackers send 1,000 a second',
  'paid requests/s (min–max)',
  '× beside the same bytes for health',
  'p50 ms',
  'p99 ms',
  'server CPU µs/request',
  'PostgreSQL CPU µs/request',
  'CPU µs/hostile request',
  'event loop p99.9 ms',
  'hostile requests/s',
  'its answers',
];

/** Honest payments while one client address attacks, beside the same number of requests for `/x402/health`. */
export const attackPart = {
  async compare(bench: Bench): Promise<string> {
    const ledger = await bench.keep(startLedger(path.join(bench.dir, 'pg'), {}));
    const stub = await bench.keep(startProgram('facilitator.ts', ['--funded', devnetAddress('payer')]));
    const load = await bench.keep(startProgram('load.ts'));
    const attacker = await bench.keep(startProgram('attack/attacker.ts'));
    const stage: Stage = { ledger, stub, load };
    const model = await bench.keep(startProgram('chat/model.ts'));
    const loopPort = await freePort();
    writeFileSync(path.join(bench.dir, 'identity-secret'), randomBytes(32).toString('hex'), { mode: 0o600 });
    writeFileSync(path.join(bench.dir, 'schema.json'), JSON.stringify(inputSchema));
    const options = paymentGateway(stage, true, bench.dir, limits, strangersTables(model.url, bench.dir));
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
      from: honestAddresses,
    };
    const compare = (targets: readonly Load[], ahead: number, { rounds, warmSecs, runSecs }: Bench) =>
      interleave(
        { ...bench, rounds, warmSecs },
        {
          targets,
          scenarios: [{ title: 'Paid request, 32 at a time', concurrency: 32, secs: runSecs, ahead }],
          isOf: () => true,
          measure: (target, scenario: Scenario, count) =>
            measureBeside(stage, gateway, { attacker, loopPort }, { load: target, scenario, count }),
        },
      );
    const findings = [
      ...(await compare(loads, 0, bench)),
      // in all a minute, so that budgets refill while the attack lasts
      ...(await compare([allToHealth, all], 2.75, {
        ...bench,
        runSecs: 4 * bench.runSecs,
        warmSecs: bench.warmSecs.slice(-1),
      })),
    ];
    return [
      tableOf(findings),
      '',
      circumstancesOf(bench, findings, await readSettings(ledger)),
      '- The limits are the defaults: 600 requests per minute and client address without a settlement. The facilitator answers 500 to ' +
        'wrapped signatures, wallets without money are invalid, and the RPC answers nothing but its chain id.',
    ].join('\n');
  },

  async profile(): Promise<string> {
    return 'attack: no profile';
  },
};

async function measureBeside(
  stage: Stage,
  gateway: Target,
  { attacker, loopPort }: { readonly attacker: Program; readonly loopPort: number },
  { load, scenario, count }: { readonly load: Load; readonly scenario: Scenario; readonly count: number },
): Promise<Honest> {
  const { ledger } = stage;
  const cpu = (): number => cpuSecs(gateway.pid) + cpuSecs(ledger.postmasterPid, true);
  let aloneCpuSecs = 0;
  const beside = async (): Promise<void> => {
    await attacker.ask({
      op: 'start',
      url: gateway.url,
      attack: load.attack,
      isForHealth: load.base === undefined,
    });
    await sleep(leadMs);
    const before = cpu();
    await sleep(aloneMs);
    aloneCpuSecs = cpu() - before;
    await readLoopDelay(loopPort);
    await sleep(scenario.ahead * scenario.secs * 1_000);
  };
  const { concurrency } = scenario;
  const measured = await measure(stage, gateway, { what: 'payments', concurrency }, count, beside);
  const loop = await readLoopDelay(loopPort);
  const { attacked } = await attacker.ask<{ readonly attacked: Attacked }>({ op: 'stop' });
  const hostileCpuUs = (aloneCpuSecs * 1e9) / (attacked.perSec * aloneMs);
  return { ...measured, attacked, hostileCpuUs, loop };
}

/** Since it was read before. */
async function readLoopDelay(port: number): Promise<LoopDelay> {
  return (await fetch(`http://127.0.0.1:${port}`)).json() as Promise<LoopDelay>;
}

function tableOf(findings: readonly Findings<Load, Scenario, Honest>[]): string {
  const lines = [row(columns), ruler(columns)];
  for (const { scenario, rounds } of findings) {
    for (const [load, measured] of rounds) {
      const { name, base = load } = load;
      // by round: the machine's speed changes between rounds
      const ratios = measured.map(
        ({ perSec }, round) => perSec / (rounds.get(base)?.[round]?.perSec ?? Number.NaN),
      );
      const of = (key: keyof Measurement | 'hostileCpuUs'): number => median(measured.map((one) => one[key]));
      lines.push(
        row([
          scenario.ahead === 0 ? name : `${name}, for a minute`,
          spread(measured.map(({ perSec }) => perSec)),
          median(ratios).toFixed(2),
          of('p50Ms').toFixed(1),
          of('p99Ms').toFixed(1),
          whole(of('serverCpuUs')),
          whole(of('databaseCpuUs')),
          whole(of('hostileCpuUs')),
          `${median(measured.map(({ loop }) => loop.p999Ms)).toFixed(0)} (at most ${Math.max(...measured.map(({ loop }) => loop.maxMs)).toFixed(0)})`,
          spread(measured.map(({ attacked }) => attacked.perSec)),
          statusesOf(measured),
        ]),
      );
    }
  }
  return lines.join('\n');
}

function statusesOf(measured: readonly Honest[]): string {
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

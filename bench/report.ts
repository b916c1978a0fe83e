import os from 'node:os';
import type { Bench } from './bench.ts';
import { measureSyncMs } from './ledger.ts';
import type { Measurement, Scenario, Target } from './measure.ts';
import type { Findings } from './rounds.ts';

type PaymentFindings = Findings<Target, Scenario, Measurement>;

const columns = [
  '',
  'requests/s (min–max)',
  '× better peer',
  'p50 ms',
  'p99 ms',
  'server CPU µs/request',
  'PostgreSQL CPU µs/request',
  'load + stubs CPU µs/request',
  'appends a batch',
];

/** One Markdown table: medians over the rounds. */
export function tableOf(findings: readonly PaymentFindings[]): string {
  const lines = [row(columns), ruler(columns)];
  for (const { scenario, rounds } of findings) {
    lines.push(row([`**${scenario.title}**`, ...columns.slice(1).map(() => '')]));
    const peer = betterPeer(scenario, rounds);
    for (const [target, measured] of rounds)
      lines.push(row([target.name, ...cellsOf(scenario, measured, peer)]));
  }
  return lines.join('\n');
}

/** The machine and the method: the same lines under every table. */
export function circumstancesOf(
  { rounds, dir }: Bench,
  findings: readonly Findings<unknown, unknown, { readonly foreignCores: number }>[],
  settings: string,
): string {
  const cpus = os.cpus();
  return [
    `- ${new Date().toISOString().slice(0, 10)}, ${cpus.length} cores (${cpus[0]?.model.trim()}), Node ${process.versions.node}, Linux ${os.release()}. ` +
      'The server, PostgreSQL, the load generator and the stub share these cores; ' +
      `programs of others took ${foreignCores(findings)}.`,
    `- PostgreSQL: ${settings}; one fdatasync of this disk: ${measureSyncMs(dir).toFixed(2)} ms.`,
    `- Medians of ${rounds} interleaved round${rounds === 1 ? '' : 's'}.`,
  ].join('\n');
}

/** Processors used by other programs, median and maximum: a table with more than a small value is not reliable. */
function foreignCores(
  findings: readonly Findings<unknown, unknown, { readonly foreignCores: number }>[],
): string {
  const seen = findings.flatMap(({ rounds }) => [...rounds.values()].flat().map((one) => one.foreignCores));
  return `${median(seen).toFixed(2)} cores (worst ${Math.max(...seen).toFixed(2)})`;
}

/** The reference of the ratios: the peers' best median throughput or, at concurrency 1, latency. */
function betterPeer(scenario: Scenario, rounds: PaymentFindings['rounds']): number {
  const peers = [...rounds]
    .filter(([{ isPeer }]) => isPeer)
    .map(([, measured]) => scoreOf(scenario, measured));
  return scenario.concurrency === 1 ? Math.min(...peers) : Math.max(...peers);
}

function scoreOf({ concurrency }: Scenario, measured: readonly Measurement[]): number {
  return median(measured.map((one) => (concurrency === 1 ? one.p50Ms : one.perSec)));
}

function cellsOf(scenario: Scenario, measured: readonly Measurement[], peer: number): string[] {
  const of = (key: keyof Measurement): number => median(measured.map((one) => one[key]));
  return [
    spread(measured.map(({ perSec }) => perSec)),
    (scoreOf(scenario, measured) / peer).toFixed(2),
    of('p50Ms').toFixed(2),
    of('p99Ms').toFixed(2),
    whole(of('serverCpuUs')),
    of('databaseCpuUs') > 0 ? whole(of('databaseCpuUs')) : '–',
    whole(of('benchCpuUs')),
    of('batchSize') > 0 ? of('batchSize').toFixed(1) : '–',
  ];
}

export const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

export const ruler = (cells: readonly string[]): string =>
  row(cells.map((_, i) => (i === 0 ? '---' : '--:')));

export const whole = (value: number): string => Math.round(value).toLocaleString('en-US');

export const spread = (rates: readonly number[]): string =>
  `${whole(median(rates))} (${whole(Math.min(...rates))}–${whole(Math.max(...rates))})`;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}

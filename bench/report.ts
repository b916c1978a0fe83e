import type { Measurement, Scenario, Target } from './measure.ts';

/** All rounds of one scenario, by target. */
export interface Findings {
  readonly scenario: Scenario;
  readonly rounds: ReadonlyMap<Target, readonly Measurement[]>;
}

const columns = [
  '',
  'requests/s (min–max)',
  '× better peer',
  'p50 ms',
  'p99 ms',
  'server CPU µs/request',
  'PostgreSQL CPU µs/request',
  'load + stub CPU µs/request',
  'appends a batch',
];

/** One Markdown table: medians over the rounds. */
export function tableOf(findings: readonly Findings[]): string {
  const lines = [row(columns), row(columns.map((_, i) => (i === 0 ? '---' : '--:')))];
  for (const { scenario, rounds } of findings) {
    lines.push(row([`**${scenario.title}**`, ...columns.slice(1).map(() => '')]));
    const peer = betterPeer(scenario, rounds);
    for (const [target, measured] of rounds)
      lines.push(row([target.name, ...cellsOf(scenario, measured, peer)]));
  }
  return lines.join('\n');
}

/** How many processors somebody else kept busy, at the median and at worst: no more than a little, or the table says little. */
export function foreignCores(findings: readonly Findings[]): string {
  const seen = findings.flatMap(({ rounds }) => [...rounds.values()].flat().map((one) => one.foreignCores));
  return `${median(seen).toFixed(2)} cores (worst ${Math.max(...seen).toFixed(2)})`;
}

/** What Tollbook is held against: the peers' best median, throughput or, at concurrency 1, latency. */
function betterPeer(scenario: Scenario, rounds: Findings['rounds']): number {
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
  const rates = measured.map(({ perSec }) => perSec);
  return [
    `${whole(of('perSec'))} (${whole(Math.min(...rates))}–${whole(Math.max(...rates))})`,
    (scoreOf(scenario, measured) / peer).toFixed(2),
    of('p50Ms').toFixed(2),
    of('p99Ms').toFixed(2),
    whole(of('serverCpuUs')),
    of('databaseCpuUs') > 0 ? whole(of('databaseCpuUs')) : '–',
    whole(of('benchCpuUs')),
    of('batchSize') > 0 ? of('batchSize').toFixed(1) : '–',
  ];
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

const whole = (value: number): string => Math.round(value).toLocaleString('en-US');

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}

import type { Quantiles } from '../quantiles.ts';
import { median, row, ruler, spread, whole } from '../report.ts';
import type { Findings } from '../rounds.ts';
import type { ChatMeasurement, ChatScenario, ChatTarget } from './measure.ts';

type ChatFindings = Findings<ChatTarget, ChatScenario, ChatMeasurement>;

const columns = [
  '',
  'requests/s (min–max)',
  'p50 ms',
  'p99 ms',
  'added p50 ms',
  'added p99 ms',
  '× peer’s added p50',
  '× peer’s added p99',
  'server CPU µs/request',
  'PostgreSQL CPU µs/request',
  'load + upstream CPU µs/request',
  'appends a batch',
];

/** One Markdown table: medians over the rounds. Added latency is relative to the same round without a gateway. */
export function chatTableOf(findings: readonly ChatFindings[]): string {
  const lines = [row(columns), ruler(columns)];
  for (const one of findings) {
    const { title, stream } = one.scenario;
    lines.push(...sectionOf(stream ? `${title}, to the end` : title, one, (measured) => measured, true));
    if (stream)
      lines.push(...sectionOf(`${title}, to the first event`, one, ({ firstEvent }) => firstEvent, false));
  }
  return lines.join('\n');
}

function sectionOf(
  title: string,
  { rounds }: ChatFindings,
  quantilesOf: (measured: ChatMeasurement) => Quantiles,
  isFirst: boolean,
): string[] {
  const latencies = [...rounds].map(([target, measured]) => ({ target, runs: measured.map(quantilesOf) }));
  const direct = latencies.find(({ target }) => target.kind === 'direct')?.runs ?? [];
  const added = (runs: readonly Quantiles[], key: keyof Quantiles): number =>
    median(runs.map((run, round) => run[key] - (direct[round]?.[key] ?? Number.NaN)));
  const peer = latencies.find(({ target }) => target.kind === 'peer')?.runs ?? [];
  const cells = ({ kind }: ChatTarget, runs: readonly Quantiles[]): string[] => {
    const times = (['p50Ms', 'p99Ms'] as const).map((key) => median(runs.map((run) => run[key])));
    const more = (['p50Ms', 'p99Ms'] as const).map((key) => added(runs, key));
    const ratios = (['p50Ms', 'p99Ms'] as const).map((key) => added(runs, key) / added(peer, key));
    const shown = [...times, ...(kind === 'direct' ? [] : [...more, ...ratios])].map((ms) => ms.toFixed(2));
    return [...shown, ...Array.from({ length: 6 - shown.length }, () => '–')];
  };
  return [
    row([`**${title}**`, ...columns.slice(1).map(() => '')]),
    ...latencies.map(({ target, runs }) => {
      const { rate, costs } = costsOf(rounds.get(target) ?? []);
      // both sections of a stream come from the same runs
      return row([
        target.name,
        isFirst ? rate : '',
        ...cells(target, runs),
        ...costs.map((cell) => (isFirst ? cell : '')),
      ]);
    }),
  ];
}

function costsOf(measured: readonly ChatMeasurement[]): { readonly rate: string; readonly costs: string[] } {
  const of = (key: 'serverCpuUs' | 'databaseCpuUs' | 'benchCpuUs' | 'batchSize'): number =>
    median(measured.map((one) => one[key]));
  return {
    rate: spread(measured.map(({ perSec }) => perSec)),
    costs: [
      cpu(of('serverCpuUs')),
      cpu(of('databaseCpuUs')),
      cpu(of('benchCpuUs')),
      of('batchSize') > 0 ? of('batchSize').toFixed(1) : '–',
    ],
  };
}

const cpu = (us: number): string => (us > 0 ? whole(us) : '–');

import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ViolationKind } from './checks/violation.ts';
import { createRandom } from './random.ts';
import { seconds, withRig } from './rig.ts';
import { makeRun, type RunReport, scheduleOf } from './run.ts';
import { describeSchedule } from './describe-schedule.ts';
import { type Feature, features, type ScenarioKind } from './schedule.ts';
import { creditSteps, gatewaySteps, routeSteps } from './steps.ts';
import { startEnvironment } from './environment.ts';

export interface ChaosOptions {
  readonly runs: number;
  readonly seed: string;
  /** The number of gateways on one database; default: one and two in turn. */
  readonly processes?: number | undefined;
  readonly scenarios?: number | undefined;
  /** Clients start within this time; default 2.5 s. */
  readonly loadMs?: number | undefined;
  /** Every scenario is of this kind. */
  readonly kind?: ScenarioKind | undefined;
  /** Only runs whose schedule has this; the others keep their numbers. */
  readonly having?: Feature | undefined;
  /** Only this run, counted from 1. */
  readonly only?: number | undefined;
  /** The directory of the program under test; default: this repository. */
  readonly root?: string | undefined;
  /** Keep the details of every run, not only of those with violations. */
  readonly keepsAll?: boolean;
  /** Violations after which no further run is made. */
  readonly stopsAt?: readonly ViolationKind[];
  readonly say: (line: string) => void;
}

const defaultScenarios = 24;
const defaultLoadMs = 2_500;
const maxPrintedViolations = 12;

/** Makes the runs one after the other and prints a line for each. */
export async function makeRuns(options: ChaosOptions): Promise<RunReport[]> {
  const { runs, seed, only, say } = options;
  const random = createRandom(seed);
  const rotation = random.fork('rotation').shuffled(gatewaySteps);
  const creditRotation = random.fork('credit rotation').shuffled(creditSteps);
  const routeRotation = random.fork('route rotation').shuffled(routeSteps);
  return withRig(async (rig) => {
    const environment = await startEnvironment(rig, random.fork('world'), options.root);
    const reports: RunReport[] = [];
    for (let run = (only ?? 1) - 1; run < (only ?? runs); run++) {
      const processes = options.processes ?? 1 + (run % 2);
      const scenarios = options.scenarios ?? defaultScenarios;
      const plan = {
        seed,
        run,
        rotation,
        creditRotation,
        routeRotation,
        processes,
        scenarioCount: scenarios,
        loadMs: options.loadMs ?? defaultLoadMs,
        kind: options.kind,
      };
      if (options.having && !features[options.having](scheduleOf(plan))) continue;
      const report = await makeRun({ environment, ...plan });
      reports.push(report);
      say(progressLine(report, processes, only ?? runs));
      if (report.violations.length === 0 && !options.keepsAll) continue;
      for (const { kind, words } of report.violations.slice(0, maxPrintedViolations))
        say(`  ${kind}: ${words}`);
      if (report.violations.length > maxPrintedViolations) say(`  … ${report.violations.length} in all`);
      say(`  details: ${keepReport(report, seed)}`);
      say(
        `  replay: npm run chaos -- --seed ${seed} --only ${run + 1} --processes ${processes} --scenarios ${scenarios}` +
          (options.kind ? ` --kind ${options.kind}` : ''),
      );
      if (report.violations.some(({ kind }) => options.stopsAt?.includes(kind))) break;
    }
    return reports;
  });
}

function progressLine(
  { run, schedule, violations, payments, counts, ms }: RunReport,
  processes: number,
  runs: number,
): string {
  const { signed, landed, accepted, completions } = payments;
  const faults = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const strikes = [...schedule.strikes, ...schedule.databaseFaults].map((one) =>
    'step' in one ? `${one.what} ${one.step}#${one.nth}` : `${one.what} at ${one.atMs} ms`,
  );
  if (schedule.turnover) strikes.push(schedule.turnover.kind);
  if (schedule.isSiege) strikes.push('siege');
  if (schedule.hasCredit) strikes.push('credit');
  if (schedule.hasRoutes) strikes.push('routes');
  const verdict = violations.length === 0 ? 'sound' : `${violations.length} VIOLATIONS`;
  return (
    `run ${String(run + 1).padStart(2)}/${runs}  ${processes} gateway${processes > 1 ? 's' : ' '}  ${seconds(ms)}  ` +
    `${signed} signed, ${landed} landed, ${accepted} accepted, ` +
    (completions > 0 ? `${completions} completions, ` : '') +
    `${faults} faults  ${verdict}  [${strikes.join(', ')}]`
  );
}

/** Writes everything about a run to a directory, to find the cause of a violation. */
function keepReport(report: RunReport, seed: string): string {
  const dir = path.join(tmpdir(), `tollbook-chaos-report-${seed.replaceAll(/[^\w-]/g, '_')}-${report.run}`);
  mkdirSync(dir, { recursive: true });
  const write = (name: string, lines: readonly string[]): void =>
    writeFileSync(path.join(dir, name), `${lines.join('\n')}\n`);
  write(
    'violations.txt',
    report.violations.map(({ kind, words }) => `${kind}: ${words}`),
  );
  write('schedule.txt', describeSchedule(report.schedule));
  write('trace.txt', report.traceLines);
  write('clients.jsonl', report.clients);
  write('ledger.jsonl', [report.ledger]);
  write('processes.log', [report.log]);
  return dir;
}

/** The faults of all runs, and their results. */
export function summarize(reports: readonly RunReport[]): string[] {
  const counts = new Map<string, number>();
  for (const report of reports)
    for (const [what, count] of report.counts) counts.set(what, (counts.get(what) ?? 0) + count);
  const total = (of: keyof RunReport['payments']): number =>
    reports.reduce((sum, { payments }) => sum + payments[of], 0);
  const table = [...counts]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([what, count]) => `  ${String(count).padStart(5)}  ${what}`);
  const broken = reports.filter(({ violations }) => violations.length > 0);
  return [
    'Faults injected:',
    ...table,
    `Payments: ${total('signed')} signed, ${total('landed')} landed (${total('upto')} by upto, ${total('permits')} by other permits), ${total('accepted')} accepted, ${total('refused')} refused ` +
      `(${total('excused')} of them before another request of the same client started the payment)`,
    `Completions: ${total('asked')} asked for, ${total('completions')} answered, ${total('spends')} spends earned`,
    broken.length === 0
      ? `${reports.length} runs, no violation`
      : `${broken.length} of ${reports.length} runs with violations: ${broken.map(({ run }) => run + 1).join(', ')}`,
  ];
}

import { seconds, withRig } from '../chaos/rig.ts';
import { until } from '../chaos/until.ts';
import { type Fault, faults } from './faults.ts';
import type { ActiveAlert } from './prometheus.ts';
import { type DrillRig, startDrillRig } from './rig.ts';
import { alertsOf, scaleRules, shippedRules } from './rules.ts';

export interface DrillOptions {
  /** The alerts to drill; left out, all. */
  readonly only?: readonly string[] | undefined;
  readonly say: (line: string) => void;
}

export interface DrillReport {
  /** Faults whose alert fired, and was resolved after them. */
  readonly proven: readonly string[];
  /** What went wrong, as sentences. */
  readonly failures: readonly string[];
}

const pollMs = 200;
const limitsMs = { fire: 150_000, resolve: 180_000, quiet: 180_000 } as const;

/** What the rules and the faults of the drill lack of each other. */
export function uncovered(rules: string): string[] {
  const alerts = alertsOf(rules);
  return [
    ...alerts.filter((name) => !faults[name]?.length).map((name) => `${name} has no fault`),
    ...Object.keys(faults)
      .filter((name) => !alerts.includes(name))
      .map((name) => `${name} is not an alert of the rules`),
  ];
}

/**
 * Causes the fault of each alert, and waits until a real Prometheus fires it, and the gateways send their own; after the fault, until both are
 * resolved.
 */
export async function runDrill({ only, say }: DrillOptions): Promise<DrillReport> {
  const gaps = uncovered(shippedRules);
  if (gaps.length > 0) return { proven: [], failures: gaps };
  return withRig(async (rig) => {
    const proven: string[] = [];
    const failures: string[] = [];
    const startedMs = performance.now();
    const drill = await startDrillRig(rig, scaleRules(shippedRules));
    say(`two gateways and Prometheus after ${seconds(performance.now() - startedMs)}`);
    for (const [alert, causes] of Object.entries(faults)) {
      if (only && !only.includes(alert)) continue;
      for (const fault of causes) {
        const result = await drillOne(drill, alert, fault).catch((error: unknown) => ({
          failure: String(error),
        }));
        const about = `${alert.padEnd(35)} ${fault.what}`;
        if ('failure' in result) failures.push(`${about}: ${result.failure}`);
        else proven.push(alert);
        say('failure' in result ? `FAILED ${about}: ${result.failure}` : `${about}: ${result.times}`);
      }
    }
    for (const { slot } of drill.gateways) failures.push(...slot.faults);
    if (failures.length > 0) say(`logs of the gateways: ${rig.keepLogs()}`);
    return { proven, failures };
  });
}

type Drilled = { readonly times: string } | { readonly failure: string };

async function drillOne(rig: DrillRig, alert: string, fault: Fault): Promise<Drilled> {
  const active = async (): Promise<readonly ActiveAlert[]> => rig.prometheus.alerts();
  const isOurs = ({ name, labels }: ActiveAlert): boolean =>
    name === alert && Object.entries(fault.labels ?? {}).every(([label, value]) => labels[label] === value);
  const quiet = await until(limitsMs.quiet, async () => (await active()).length === 0, pollMs);
  if (quiet === undefined) return { failure: `still active before the fault: ${await named(active)}` };
  const own = ownAlert(rig, fault.own);
  const end = await fault.begin(rig);
  const [fired, told] = await Promise.all([
    until(
      limitsMs.fire,
      async () => (await active()).some((one) => isOurs(one) && one.state === 'firing'),
      pollMs,
    ),
    own.becomes('firing'),
  ]);
  const others = await named(active);
  await end();
  const [resolved, well] = await Promise.all([
    until(limitsMs.resolve, async () => !(await active()).some(isOurs), pollMs),
    own.becomes('resolved'),
  ]);
  if (fired === undefined) return { failure: `it did not fire; active were: ${others || 'none'}` };
  if (resolved === undefined) return { failure: 'it was not resolved after the fault' };
  if (told === undefined || well === undefined)
    return { failure: `the gateways did not tell ${fault.own}: ${own.lines() || 'nothing'}` };
  const times = `fired after ${seconds(fired)}, resolved ${seconds(resolved)} after its end`;
  if (fault.own === undefined) return { times };
  return {
    times: `${times}; ${fault.own} told after ${seconds(told)}, resolved ${seconds(well)} after its end`,
  };
}

/** The gateways' own alerts from now on. That of a halt is never resolved: its gateways are started again. */
function ownAlert({ told }: DrillRig, kind: string | undefined) {
  const before = told.length;
  const since = () => told.slice(before);
  return {
    async becomes(status: 'firing' | 'resolved'): Promise<number | undefined> {
      if (kind === undefined || (kind === 'ledger_inconsistent' && status === 'resolved')) return 0;
      return until(
        status === 'firing' ? limitsMs.fire : limitsMs.resolve,
        async () => since().some((alert) => alert.type === kind && alert.status === status),
        pollMs,
      );
    },
    lines: () =>
      since()
        .map(({ type, status }) => `${type} (${status})`)
        .join(', '),
  };
}

async function named(active: () => Promise<readonly ActiveAlert[]>): Promise<string> {
  return (await active()).map(({ name, state }) => `${name} (${state})`).join(', ');
}

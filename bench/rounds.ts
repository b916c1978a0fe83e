import { fail } from '../src/base/terminal/terminal.ts';
import type { Bench } from './bench.ts';

interface Named {
  readonly name: string;
}

interface Timed {
  readonly title: string;
  readonly concurrency: number;
  readonly secs: number;
  readonly guessedPerSec?: number;
}

/** All rounds of one scenario, by target. */
export interface Findings<Target, Scenario, Measurement> {
  readonly scenario: Scenario;
  readonly rounds: ReadonlyMap<Target, readonly Measurement[]>;
}

interface Comparison<Target, Scenario, Measurement> {
  readonly targets: readonly Target[];
  readonly scenarios: readonly Scenario[];
  /** Whether a scenario applies to a target. */
  isOf(scenario: Scenario, target: Target): boolean;
  measure(target: Target, scenario: Scenario, count: number): Promise<Measurement>;
}

/** Measures all targets in each scenario, round by round. */
export async function interleave<T extends Named, S extends Timed, M extends { readonly perSec: number }>(
  { rounds, warmSecs, having }: Bench,
  { targets, scenarios: all, isOf, measure }: Comparison<T, S, M>,
): Promise<Findings<T, S, M>[]> {
  const scenarios = all.filter(({ title }) => title.includes(having));
  /** The last measured rate in requests per second: a run gets the number of requests that fills `secs`. */
  const rates = new Map<string, number>();
  const run = async (target: T, scenario: S): Promise<M> => {
    const key = `${target.name}/${scenario.title}`;
    const rate = rates.get(key) ?? scenario.guessedPerSec ?? 4 * scenario.concurrency + 200;
    const count = Math.max(scenario.concurrency * 4, Math.round(rate * scenario.secs));
    const measured = await measure(target, scenario, count);
    rates.set(key, measured.perSec);
    fail(`${scenario.title}: ${target.name} ${Math.round(measured.perSec)}/s`);
    return measured;
  };

  for (const secs of warmSecs) {
    for (const target of targets) {
      for (const scenario of scenarios) if (isOf(scenario, target)) await run(target, { ...scenario, secs });
    }
  }
  const findings = scenarios.map((scenario) => ({
    scenario,
    rounds: new Map<T, M[]>(targets.filter((target) => isOf(scenario, target)).map((target) => [target, []])),
  }));
  for (let round = 0; round < rounds; round++) {
    for (const { scenario, rounds: measured } of findings) {
      // the order rotates, so that no target always follows the same other target
      const order = [...measured.keys()];
      order.push(...order.splice(0, round % order.length));
      for (const target of order) measured.get(target)?.push(await run(target, scenario));
    }
  }
  return findings;
}

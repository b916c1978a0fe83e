import type { Random } from './random.ts';
import {
  creditKinds,
  hasCredit,
  hasRoutes,
  isOfRoutesAlone,
  type JobName,
  routeJobs,
  routeKinds,
  type Scenario,
  type ScenarioKind,
  type ScheduleOptions,
} from './schedule.ts';

/** Shares of the scenario kinds, in per cent. The others take long, and are part of some runs only. */
const kindShares: Partial<Record<ScenarioKind, number>> = {
  honest: 18,
  quitter: 10,
  signs_again: 6,
  twins: 9,
  impostor: 5,
  nonce_rivals: 11,
  reluctant: 8,
  taken_quote: 4,
  long_landing: 3,
  void_nonce: 3,
  one_transaction: 3,
  quote_rivals: 6,
  bound_rivals: 3,
  exact: 6,
  spent_nonce: 3,
  spent_id: 2,
};

const version2Kinds: ReadonlySet<ScenarioKind> = new Set([
  'quote_rivals',
  'bound_rivals',
  'taken_quote',
  'one_transaction',
  'spent_id',
  'last_moment',
  'credit_buyer',
]);

export function makeScenario(random: Random, index: number, options: ScheduleOptions): Scenario {
  const slow = slowKinds(options)[index];
  const picked = pickKind(random);
  const isRouted = usesRoute(index, options);
  const kind =
    options.kind ??
    creditKindOf(index, options) ??
    slow ??
    (isRouted ? routeKinds[((options.run + index) >> 1) % routeKinds.length] : undefined) ??
    picked;
  // a delegated caller's signature is for one body, and its payment is never delivered once it was refused
  const isDelegated = kind !== 'bound_rivals' && kind !== 'taken_quote' && kind !== 'one_transaction';
  const other = isDelegated ? 'delegated' : 'leased';
  const job: JobName =
    kind === 'credit_buyer'
      ? 'top_up'
      : isRouted
        ? kind === 'metered'
          ? 'metered'
          : random.pick(routeJobs)
        : kind === 'nonce_rivals' || kind === 'spent_nonce'
          ? 'delegated'
          : random.pick(['pushed', 'pushed', 'leased', 'leased', other] as const);
  // a version 1 payment names no quote, has no id, and always uses the first token
  const isVersion2 = isRouted || version2Kinds.has(kind);
  const version = !isVersion2 && random.chance(0.15) ? 1 : 2;
  return {
    id: `v${index}`,
    // it takes long, so it starts early
    atMs: random.between(0, slow || kind === 'credit_buyer' ? 300 : options.loadMs),
    kind,
    job,
    version,
    option: version === 2 && kind !== 'credit_buyer' ? random.pick([0, 0, 0, 1, 2, 2] as const) : 0,
    frontRun: frontRunOf(random, kind),
    bodyBytes: random.chance(0.08) ? random.between(9_000, 60_000) : random.between(20, 400),
  };
}

/** The scenarios that take long. A payment without balance ends only when its authorization expires. */
function slowKinds({ run, processes }: ScheduleOptions): readonly ScenarioKind[] {
  const stalled = processes > 1 ? (['stalled_failure', 'last_moment'] as const) : [];
  return run % 3 === 2 ? ['poor', 'late_landing', ...stalled] : stalled;
}

/** In a run with credit, half of the scenarios: each kind in turn, behind the slow ones. */
function creditKindOf(index: number, options: ScheduleOptions): ScenarioKind | undefined {
  const isHalf = index % 2 === 1 && index > slowKinds(options).length;
  return hasCredit(options) && isHalf ? creditKinds[(index >> 1) % creditKinds.length] : undefined;
}

/** In a run with routes, half of the scenarios, behind the slow ones. */
function usesRoute(index: number, options: ScheduleOptions): boolean {
  return (
    hasRoutes(options) &&
    (isOfRoutesAlone(options.kind) || (index % 2 === 1 && index > slowKinds(options).length))
  );
}

/** Who attacks in a siege; all others are honest. */
const besiegers: readonly ScenarioKind[] = [
  'flooder',
  'provoker',
  'provoker',
  'provoker',
  'unfunded',
  'unfunded',
  'unfunded',
];

export function makeSiegeScenario(random: Random, index: number, { loadMs }: ScheduleOptions): Scenario {
  const kind = besiegers[index] ?? 'honest';
  return {
    id: `v${index}`,
    atMs: kind === 'unfunded' ? random.between(loadMs >> 2, loadMs >> 1) : random.between(0, loadMs),
    kind,
    job: random.pick(['pushed', 'leased'] as const),
    version: 2,
    option: kind === 'honest' ? random.pick([0, 2] as const) : 0,
    frontRun: undefined,
    bodyBytes: random.between(20, 400),
  };
}

function frontRunOf(random: Random, kind: ScenarioKind): Scenario['frontRun'] {
  // it has no money left then, so that a facilitator which looks calls its payment invalid
  if (kind === 'exact') return random.pick(['before_verify', 'before_settle'] as const);
  if (kind !== 'honest' && kind !== 'quitter' && kind !== 'twins') return undefined;
  if (random.chance(0.08)) return 'before_settle';
  // a payment that lands before anything is claimed, from a client that never asks again, leaves no trace to find
  return kind !== 'quitter' && random.chance(0.06) ? 'before_verify' : undefined;
}

function pickKind(random: Random): ScenarioKind {
  let rest = random.between(0, 99);
  for (const [kind, share] of Object.entries(kindShares)) {
    rest -= share;
    if (rest < 0) return kind as ScenarioKind;
  }
  return 'honest';
}

import type { Random } from './random.ts';
import { gatewaySteps, type Step } from './steps.ts';

/** A fault of one process when it reaches a step for the nth time. */
export interface Strike {
  readonly step: Step;
  readonly nth: number;
  readonly what: 'kill_gateway' | 'freeze_gateway' | 'freeze_backend' | 'kill_runner';
  /** Milliseconds: the length of a freeze; after a kill, the delay of messages that the process had sent. */
  readonly ms: number;
}

/** A fault of the database server, at a time since the start of the run. */
export interface DatabaseFault {
  readonly atMs: number;
  readonly what: 'restart_postgres' | 'crash_postgres';
}

/** A time without any answer of the chain's node. */
export interface Outage {
  readonly atMs: number;
  readonly forMs: number;
}

export type ScenarioKind =
  | 'honest'
  /** Drops the connection and does not return. */
  | 'quitter'
  /** Signs a new payment after each 402, as official clients do. */
  | 'signs_again'
  /** Several clients send the same payment with the same request. */
  | 'twins'
  /** One payment is sent with two different requests. */
  | 'impostor'
  /** Two payments carry the same delegated nonce. */
  | 'nonce_rivals'
  /** Two payments name the same quote. */
  | 'quote_rivals'
  /** Two payments, and a balance for one. */
  | 'poor'
  /** A balance for exactly one payment, which a third party submits. */
  | 'exact'
  /** A balance that comes late: a third party lands the payment after its refusal. */
  | 'late_landing'
  /** Several payments with one delegated nonce; refused ones land late. */
  | 'spent_nonce'
  /** The same with one payment id of the payer's own. */
  | 'spent_id'
  /** A reported failure whose append is stalled while another gateway settles the payment again. */
  | 'stalled_failure'
  /** A payer without balance. */
  | 'unfunded'
  /** A stranger whose payments make the facilitator answer 500. */
  | 'provoker';

/** The jobs on sale, by how they are delivered and authorized. */
export const jobs = {
  pushed: { path: '/x402/jobs/1/0' },
  delegated: { path: '/x402/jobs/1/1' },
  leased: { path: '/x402/jobs/2/0' },
} as const;
export type JobName = keyof typeof jobs;

/** What one client, or a few clients together, do. */
export interface Scenario {
  readonly id: string;
  readonly atMs: number;
  readonly kind: ScenarioKind;
  readonly job: JobName;
  readonly version: 1 | 2;
  /** The token of the payment: 0 is USDC, 1 is EURC. */
  readonly option: 0 | 1;
  /** When a third party submits the authorization. */
  readonly frontRun: 'before_verify' | 'before_settle' | undefined;
  readonly bodyBytes: number;
}

/** Everything about a run that is decided before it starts. */
export interface Schedule {
  readonly strikes: readonly Strike[];
  readonly databaseFaults: readonly DatabaseFault[];
  readonly outages: readonly Outage[];
  readonly scenarios: readonly Scenario[];
  /** No random faults: hostile clients beside honest ones, whose payments must all succeed. */
  readonly isSiege: boolean;
}

/** The inputs of a schedule besides the seed. */
export interface ScheduleOptions {
  readonly run: number;
  /** Successive runs kill a gateway at these steps in turn. */
  readonly rotation: readonly Step[];
  readonly scenarioCount: number;
  /** Clients start within this time. */
  readonly loadMs: number;
  /** The number of gateways. */
  readonly processes: number;
  /** Every scenario is of this kind. */
  readonly kind?: ScenarioKind | undefined;
}

/** Shares of the scenario kinds, in per cent. The others take long, and are part of some runs only. */
const kindShares: Partial<Record<ScenarioKind, number>> = {
  honest: 38,
  quitter: 13,
  signs_again: 8,
  twins: 11,
  impostor: 6,
  nonce_rivals: 12,
  quote_rivals: 6,
  exact: 6,
};
/** One run in five is a siege. */
const siegeEvery = 5;

/** The schedule of a run: a function of the seed and the options alone. */
export function makeSchedule(random: Random, options: ScheduleOptions): Schedule {
  const { scenarioCount: scenarios, run } = options;
  const isSiege = run % siegeEvery === siegeEvery - 1 && options.kind === undefined;
  return {
    strikes: isSiege ? [] : makeStrikes(random.fork('strikes'), options),
    databaseFaults: isSiege ? [] : makeDatabaseFaults(random.fork('mishaps'), options),
    outages: makeOutages(random.fork('outages'), options, isSiege),
    scenarios: Array.from({ length: scenarios }, (_, index) => {
      const draws = random.fork(`visit ${index}`);
      return isSiege ? makeSiegeScenario(draws, index, options) : makeScenario(draws, index, options);
    }),
    isSiege,
  };
}

function makeOutages(random: Random, { loadMs }: ScheduleOptions, isSiege: boolean): Outage[] {
  if (!isSiege && !random.chance(0.25)) return [];
  return [{ atMs: random.between(0, loadMs >> 1), forMs: random.between(loadMs >> 1, loadMs) }];
}

/** Two kills a run, so that a few runs cover all steps. */
function makeStrikes(random: Random, { rotation, run }: ScheduleOptions): Strike[] {
  const turn = run - Math.floor((run + 1) / siegeEvery);
  const killed = [0, 1].flatMap((offset) => rotation[(2 * turn + offset) % rotation.length] ?? []);
  const strikes: Strike[] = killed.map((step) => ({
    step,
    nth: random.between(1, 4),
    what: 'kill_gateway',
    ms: random.between(100, 1_500),
  }));
  const appends = gatewaySteps.filter((step) => step.endsWith('_append'));
  const freeze = (step: Step, what: Strike['what']): Strike => ({
    step,
    nth: random.between(1, 4),
    what,
    ms: random.between(500, 2_500),
  });
  if (random.chance(0.6)) strikes.push(freeze(random.pick(appends), 'freeze_gateway'));
  if (random.chance(0.4)) {
    strikes.push(freeze(random.pick(appends.filter((step) => step.startsWith('during'))), 'freeze_backend'));
  }
  if (random.chance(0.5))
    strikes.push({ step: 'leased', nth: random.between(1, 2), what: 'kill_runner', ms: 0 });
  if (random.chance(0.4)) {
    strikes.push({
      step: 'pushed',
      nth: random.between(1, 5),
      what: 'kill_runner',
      ms: random.between(0, 20),
    });
  }
  return strikes;
}

function makeDatabaseFaults(random: Random, { loadMs }: ScheduleOptions): DatabaseFault[] {
  if (!random.chance(0.5)) return [];
  const what = random.pick(['restart_postgres', 'crash_postgres'] as const);
  return [{ atMs: random.between(loadMs >> 2, loadMs), what }];
}

function makeScenario(random: Random, index: number, options: ScheduleOptions): Scenario {
  const slow = slowKinds(options)[index];
  const picked = pickKind(random);
  const kind = options.kind ?? slow ?? picked;
  const job =
    kind === 'nonce_rivals' || kind === 'spent_nonce'
      ? 'delegated'
      : random.pick(['pushed', 'pushed', 'leased', 'leased', 'delegated'] as const);
  // a version 1 payment names no quote, has no id, and always uses the first token
  const isVersion2 = kind === 'quote_rivals' || kind === 'spent_id';
  const version = !isVersion2 && random.chance(0.15) ? 1 : 2;
  return {
    id: `v${index}`,
    // it takes long, so it starts early
    atMs: random.between(0, slow ? 300 : options.loadMs),
    kind,
    job,
    version,
    option: version === 2 && random.chance(0.25) ? 1 : 0,
    frontRun: frontRunOf(random, kind),
    bodyBytes: random.chance(0.08) ? random.between(9_000, 60_000) : random.between(20, 400),
  };
}

/** The scenarios that take long. A payment without balance ends only when its authorization expires. */
function slowKinds({ run, processes }: ScheduleOptions): readonly ScenarioKind[] {
  const stalled = processes > 1 && run % 4 === 1 ? (['stalled_failure'] as const) : [];
  return run % 3 === 2 ? ['poor', 'late_landing', ...stalled] : stalled;
}

/** Who attacks in a siege; all others are honest. */
const besiegers: readonly ScenarioKind[] = ['provoker', 'provoker', 'provoker'];

function makeSiegeScenario(random: Random, index: number, { loadMs }: ScheduleOptions): Scenario {
  return {
    id: `v${index}`,
    atMs: random.between(0, loadMs),
    kind: besiegers[index] ?? 'honest',
    job: random.pick(['pushed', 'leased'] as const),
    version: 2,
    option: 0,
    frontRun: undefined,
    bodyBytes: random.between(20, 400),
  };
}

function frontRunOf(random: Random, kind: ScenarioKind): Scenario['frontRun'] {
  if (kind === 'exact') return 'before_settle';
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

/** The schedule as text, a line for each item. */
export function describeSchedule({ strikes, databaseFaults, outages, scenarios }: Schedule): string[] {
  return [
    ...strikes.map(({ what, step, nth, ms }) => `${what} ${step}#${nth} (${ms} ms)`),
    ...databaseFaults.map(({ what, atMs }) => `${what} at ${atMs} ms`),
    ...outages.map(({ atMs, forMs }) => `no answer of the chain's node from ${atMs} ms for ${forMs} ms`),
    ...scenarios.map(
      ({ id, atMs, kind, job, version, option, frontRun, bodyBytes }) =>
        `${id} at ${atMs} ms: ${kind}, ${job}, version ${version}, option ${option}, ${bodyBytes} bytes` +
        (frontRun ? `, front-run ${frontRun}` : ''),
    ),
  ];
}

import type { Random } from './random.ts';
import { gatewaySteps, type Step } from './steps.ts';

/** Something that strikes when a step is reached for the nth time. */
export interface Strike {
  readonly step: Step;
  readonly nth: number;
  readonly what: 'kill_gateway' | 'freeze_gateway' | 'freeze_backend' | 'kill_runner';
  /** Of a freeze; of a kill: how late what is on its way arrives. */
  readonly ms: number;
}

/** Something that happens to everybody at a time. */
export interface Mishap {
  readonly atMs: number;
  readonly what: 'restart_postgres' | 'crash_postgres';
}

export type VisitKind =
  | 'honest'
  /** Drops the connection and never returns. */
  | 'quitter'
  /** Signs a new payment for each 402, as clients do. */
  | 'signs_again'
  /** Several that send one payment with one request. */
  | 'twins'
  /** One payment with two requests. */
  | 'impostor'
  /** Two payments with one delegated nonce. */
  | 'nonce_rivals'
  | 'quote_rivals'
  /** Two payments and money for one. */
  | 'poor'
  /** Money for one payment, which somebody else submits. */
  | 'exact'
  /** Poor at first: what was refused is paid after all, by somebody else. */
  | 'late_landing';

/** The jobs that are sold: how they are delivered, and who may call them. */
export const jobs = {
  pushed: { path: '/x402/jobs/1/0' },
  delegated: { path: '/x402/jobs/1/1' },
  leased: { path: '/x402/jobs/2/0' },
} as const;
export type JobName = keyof typeof jobs;

/** One client, or a few that belong together. */
export interface Visit {
  readonly id: string;
  readonly atMs: number;
  readonly kind: VisitKind;
  readonly job: JobName;
  readonly version: 1 | 2;
  /** Which token is paid with: 0 is USDC, 1 is EURC. */
  readonly option: 0 | 1;
  /** When somebody else submits the authorization. */
  readonly frontRun: 'before_verify' | 'before_settle' | undefined;
  readonly bodyBytes: number;
}

/** All that is decided about a run before it begins. */
export interface Schedule {
  readonly strikes: readonly Strike[];
  readonly mishaps: readonly Mishap[];
  readonly visits: readonly Visit[];
}

/** What decides a schedule, beside the seed. */
export interface ScheduleOptions {
  readonly run: number;
  /** All runs go through these steps in turn. */
  readonly rotation: readonly Step[];
  readonly visits: number;
  /** How long clients keep coming. */
  readonly loadMs: number;
}

/** How many of a hundred visits are of which kind. The poor come to every third run: they take long. */
const kindShares: Readonly<Record<Exclude<VisitKind, 'poor' | 'late_landing'>, number>> = {
  honest: 38,
  quitter: 13,
  signs_again: 8,
  twins: 11,
  impostor: 6,
  nonce_rivals: 12,
  quote_rivals: 6,
  exact: 6,
};

/** What happens in a run: it follows from the seed and the options alone. */
export function makeSchedule(random: Random, options: ScheduleOptions): Schedule {
  const { visits } = options;
  return {
    strikes: makeStrikes(random.fork('strikes'), options),
    mishaps: makeMishaps(random.fork('mishaps'), options),
    visits: Array.from({ length: visits }, (_, index) =>
      makeVisit(random.fork(`visit ${index}`), index, options),
    ),
  };
}

/** Two kills a run, so that a few runs have been through all steps. */
function makeStrikes(random: Random, { rotation, run }: ScheduleOptions): Strike[] {
  const killed = [0, 1].flatMap((offset) => rotation[(2 * run + offset) % rotation.length] ?? []);
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

function makeMishaps(random: Random, { loadMs }: ScheduleOptions): Mishap[] {
  if (!random.chance(0.5)) return [];
  const what = random.pick(['restart_postgres', 'crash_postgres'] as const);
  return [{ atMs: random.between(loadMs >> 2, loadMs), what }];
}

function makeVisit(random: Random, index: number, { run, loadMs }: ScheduleOptions): Visit {
  const poor = run % 3 === 2 ? (['poor', 'late_landing'] as const)[index] : undefined;
  const kind = poor ?? pickKind(random);
  const job =
    kind === 'nonce_rivals'
      ? 'delegated'
      : random.pick(['pushed', 'pushed', 'leased', 'leased', 'delegated'] as const);
  // a version 1 payment names no quote, and means the first token
  const version = kind !== 'quote_rivals' && random.chance(0.15) ? 1 : 2;
  return {
    id: `v${index}`,
    // what the poor cannot pay is over only when its time is
    atMs: random.between(0, poor ? 300 : loadMs),
    kind,
    job,
    version,
    option: version === 2 && random.chance(0.25) ? 1 : 0,
    frontRun: frontRunOf(random, kind),
    bodyBytes: random.chance(0.08) ? random.between(9_000, 60_000) : random.between(20, 400),
  };
}

function frontRunOf(random: Random, kind: VisitKind): Visit['frontRun'] {
  if (kind === 'exact') return 'before_settle';
  if (kind !== 'honest' && kind !== 'quitter' && kind !== 'twins') return undefined;
  if (random.chance(0.08)) return 'before_settle';
  // who pays before anything is claimed, and then never asks again, cannot be known
  return kind !== 'quitter' && random.chance(0.06) ? 'before_verify' : undefined;
}

function pickKind(random: Random): VisitKind {
  let rest = random.between(0, 99);
  for (const [kind, share] of Object.entries(kindShares)) {
    rest -= share;
    if (rest < 0) return kind as VisitKind;
  }
  return 'honest';
}

/** The schedule in words. */
export function describeSchedule({ strikes, mishaps, visits }: Schedule): string[] {
  return [
    ...strikes.map(({ what, step, nth, ms }) => `${what} ${step}#${nth} (${ms} ms)`),
    ...mishaps.map(({ what, atMs }) => `${what} at ${atMs} ms`),
    ...visits.map(
      ({ id, atMs, kind, job, version, option, frontRun, bodyBytes }) =>
        `${id} at ${atMs} ms: ${kind}, ${job}, version ${version}, option ${option}, ${bodyBytes} bytes` +
        (frontRun ? `, front-run ${frontRun}` : ''),
    ),
  ];
}

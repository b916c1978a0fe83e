import type { ConfigVariant } from './gateway-config.ts';
import type { Step } from './steps.ts';

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

/** What becomes of a payment whose block was replaced: a third party lands it again, its payer cancels it, or nothing. */
export type Fate = 'landed again' | 'cancelled' | 'left';

/** The last blocks of the chain are replaced. */
export interface Reorg {
  /** It happens when this many payments of the run have landed. */
  readonly nth: number;
  /** How long after that. */
  readonly delayMs: number;
  /** In blocks; those before are final. */
  readonly depth: number;
  /** Of its payments, in turn. */
  readonly fates: readonly Fate[];
}

/** Another database server takes over: a standby, or one from a backup. */
export interface Turnover {
  readonly kind: 'synchronous_failover' | 'asynchronous_failover' | 'restore';
  /** Whether the gateways seal and anchor a log. */
  readonly hasLog: boolean;
  /** When the backup is made. */
  readonly atMs: number;
  /** How long the first server continues after that; what an asynchronous standby or a backup lacks. */
  readonly forMs: number;
}

/** A clock that is wrong for some time. */
export interface ClockStep {
  readonly atMs: number;
  readonly forMs: number;
  readonly bySecs: number;
  /** A number is the index of a gateway. */
  readonly of: 'database' | number;
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
  /** A quote of a pricing service for one payer and body, which another payer pays as well, and its own for another body. */
  | 'bound_rivals'
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
  /** A payment just before the end of its quote, whose start reaches the database after it. */
  | 'last_moment'
  /** A runner refuses the call at first: it is a dead letter, which an operator refunds or queues again. */
  | 'reluctant'
  /** Two payments of one quote, of which the refused one lands: its payer asks for delivery, and an operator refunds it. */
  | 'taken_quote'
  /** The payment lands in a transaction with logs of more than 2 MiB. */
  | 'long_landing'
  /** The payer cancels the nonce of its payment, or uses it for one atom. */
  | 'void_nonce'
  /** Two payments of one payer, which a third party lands in one transaction; or one of them, which only names the other in its calldata. */
  | 'one_transaction'
  /** Leaves in the middle of the answer of a route, and sends the same payment again. */
  | 'leaver'
  /** Pays by upto for what an answer has used: once, several times at once, and leaving in the middle. */
  | 'metered'
  /** A payer without balance. */
  | 'unfunded'
  /** A stranger whose payments make the facilitator answer 500. */
  | 'provoker'
  /** A stranger who sends requests to every open route. */
  | 'flooder'
  | CreditKind;

/** Clients of chat, in runs whose gateways serve it. */
export const creditKinds = [
  /** Buys credit, signs in with the wallet, and asks for completions one after another. */
  'credit_buyer',
  /** Asks for several completions at once, with credit for one. */
  'credit_rivals',
  /** Pays for completions by spends, one after another. */
  'spender',
  /** Sends one spend several times at once, with the same request. */
  'spend_twins',
  /** Sends one spend with two different requests. */
  'spend_impostor',
  /** A third party lands the spend before it is sent, or while it is accepted. */
  'spend_front_run',
] as const;
export type CreditKind = (typeof creditKinds)[number];

/** The jobs on sale, by how they are delivered and authorized. */
export const jobs = {
  pushed: { path: '/x402/jobs/1/0' },
  delegated: { path: '/x402/jobs/1/1' },
  leased: { path: '/x402/jobs/2/0' },
  /** It sells credit, in runs whose gateways serve chat. */
  top_up: { path: '/x402/jobs/9/0' },
  /** Routes: one whose upstream answers before the payment is settled, two that are settled first, and one that is charged by its answer. */
  file: { path: '/files' },
  stream: { path: '/streams' },
  order: { path: '/orders' },
  metered: { path: '/metered' },
} as const;
export type JobName = keyof typeof jobs;
export const topUpPath = jobs.top_up.path;
export const routeJobs = ['file', 'stream', 'order', 'metered'] as const satisfies readonly JobName[];

/** Whether a request is one for a route. */
export function isOfRoute({ path }: { readonly path: string }): boolean {
  return routeJobs.some((job) => path.startsWith(`${jobs[job].path}/`));
}

/** What one client, or a few clients together, do. */
export interface Scenario {
  readonly id: string;
  readonly atMs: number;
  readonly kind: ScenarioKind;
  readonly job: JobName;
  readonly version: 1 | 2;
  /** The token of the payment: 0 is USDC, 1 is EURC, 2 is PUSD by Permit2. */
  readonly option: 0 | 1 | 2;
  /** When a third party submits the authorization. */
  readonly frontRun: 'before_verify' | 'before_settle' | undefined;
  readonly bodyBytes: number;
}

/** What a hunt may ask of a schedule, so that a bug that only such runs can show is looked for in no others. */
export const features = {
  turnover: ({ turnover }) => turnover !== undefined,
  loss: ({ turnover }) => turnover !== undefined && turnover.kind !== 'synchronous_failover',
  clocks: ({ clockSteps }) => clockSteps.length > 0,
  outages: ({ outages }) => outages.length > 0,
  reorgs: ({ reorgs }) => reorgs.length > 0,
  siege: ({ isSiege }) => isSiege,
  credit: (schedule) => schedule.hasCredit,
  routes: (schedule) => schedule.hasRoutes,
  refunds: ({ hasOperator }) => hasOperator,
} as const satisfies Readonly<Record<string, (schedule: Schedule) => boolean>>;
export type Feature = keyof typeof features;

/** Everything about a run that is decided before it starts. */
export interface Schedule {
  readonly strikes: readonly Strike[];
  readonly databaseFaults: readonly DatabaseFault[];
  readonly outages: readonly Outage[];
  readonly turnover: Turnover | undefined;
  readonly reorgs: readonly Reorg[];
  /** How long runners hold each call at its first attempt, of which every second fails: so that reorgs meet calls that a runner has. */
  readonly holdMs: number;
  readonly clockSteps: readonly ClockStep[];
  /** The configuration of each gateway. */
  readonly configs: readonly ConfigVariant[];
  readonly scenarios: readonly Scenario[];
  /** No random faults: hostile clients beside honest ones, whose payments must all succeed. */
  readonly isSiege: boolean;
  /** The gateways sell credit and serve chat as well, which is paid by credit and by spends. */
  readonly hasCredit: boolean;
  /** The gateways sell paths of an HTTP API as well. */
  readonly hasRoutes: boolean;
  /** An operator refunds what is due, while another one queues dead letters again. */
  readonly hasOperator: boolean;
}

/** One run in five is a siege. */
export const siegeEvery = 5;
/** In one run in five another database server takes over. */
export const turnoverEvery = 5;
/** In one run of three an operator refunds, unless it is a siege or another server takes over. */
const refundsEvery = 3;
/** In two runs of five, but not in the first three, gateways serve chat as well. Sieges and turnovers are in others. */
const creditEvery = 5;
const firstCreditRun = 3;

/** The inputs of a schedule besides the seed. */
export interface ScheduleOptions {
  readonly run: number;
  /** Successive runs kill a gateway at these steps in turn. */
  readonly rotation: readonly Step[];
  /** The same for the steps of credit, in runs that have it. */
  readonly creditRotation: readonly Step[];
  /** And of routes. */
  readonly routeRotation: readonly Step[];
  readonly scenarioCount: number;
  /** Clients start within this time. */
  readonly loadMs: number;
  /** The number of gateways. */
  readonly processes: number;
  /** Every scenario is of this kind. */
  readonly kind?: ScenarioKind | undefined;
}

/** Their payments end as dead letters or as refused ones that landed. */
const refundedKinds: readonly ScenarioKind[] = ['reluctant', 'taken_quote'];

export function mayHaveOperator({ run, kind }: Pick<ScheduleOptions, 'run' | 'kind'>): boolean {
  return kind === undefined ? run % refundsEvery === 0 : refundedKinds.includes(kind);
}

export function isCreditKind(kind: ScenarioKind | undefined): kind is CreditKind {
  return creditKinds.some((one) => one === kind);
}

export function hasCredit({ run, kind }: Pick<ScheduleOptions, 'run' | 'kind'>): boolean {
  if (kind !== undefined) return isCreditKind(kind);
  return run >= firstCreditRun && (run % creditEvery === 0 || run % creditEvery === firstCreditRun);
}

/** One run of five, which is none of the others: routes, sieges, turnovers and credit do not meet. */
export const routesEvery = 5;
/** What clients of routes do, in turn. */
export const routeKinds = [
  'honest',
  'leaver',
  'twins',
  'taken_quote',
  'impostor',
  'signs_again',
  'leaver',
  'exact',
  'honest',
  'twins',
  'late_landing',
  'quitter',
  'long_landing',
  'quote_rivals',
  'poor',
  'void_nonce',
  'metered',
] as const satisfies readonly ScenarioKind[];

/** Whether clients of this kind use nothing but routes. */
export function isOfRoutesAlone(kind: ScenarioKind | undefined): boolean {
  return kind === 'leaver' || kind === 'metered';
}

export function hasRoutes({ run, kind }: Pick<ScheduleOptions, 'run' | 'kind'>): boolean {
  if (isOfRoutesAlone(kind)) return true;
  const isRouted = kind === undefined || routeKinds.some((one) => one === kind);
  return run % routesEvery === 1 && isRouted;
}

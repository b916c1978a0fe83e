/** What the operator is alerted about while it lasts: each kind is firing, and later resolved. */
type AlertKind =
  | 'dead_letters'
  | 'runner_paused'
  | 'calls_waiting'
  | 'deliveries_failing'
  | 'broker_trouble'
  | 'facilitator_trouble'
  | 'chain_trouble'
  | 'upstream_trouble'
  | 'outbox_full'
  | 'database_away'
  | 'appends_refused'
  | 'gateway_not_ready'
  | 'replica_unused'
  | 'anchors_behind'
  | 'low_gas'
  | 'certificate_trouble'
  | 'clock_trouble'
  | 'no_current_rate'
  | 'rate_old'
  | 'listing_gone'
  | 'listing_missing'
  | 'discovery_unknown'
  | 'trigger_behind'
  | 'factor_guessed';

/** A condition that holds now. Every process reports those that it sees; each kind and subject has one alert. */
export interface AlertCondition {
  readonly kind: AlertKind;
  /** What it is about, such as a runner's name; the same in every process. */
  readonly subject: string;
  /** One or two sentences for a person: the fault, and the next step. */
  readonly text: string;
  /** For programs. */
  readonly details?: Readonly<Record<string, string | number | null>>;
}

/** The sentence with which a kind is resolved, about its subject. */
const wellAgain: { readonly [K in AlertKind]: (subject: string) => string } = {
  dead_letters: (service) => `Every dead letter of ${service} was queued again, given up or refunded.`,
  runner_paused: (runner) => `The runner ${runner} gets calls again.`,
  calls_waiting: (service) => `Runners take the calls of ${service} again, or none waits.`,
  deliveries_failing: (runner) =>
    `The runner ${runner} has done a call, or its gateway was started again and has seen no failures since.`,
  broker_trouble: (broker) => `The broker ${broker} takes calls again.`,
  facilitator_trouble: (host) => `The facilitator ${host} answers again, and settles every accepted token.`,
  chain_trouble: (network) => `The RPC of ${network} answers again.`,
  upstream_trouble: (host) =>
    `The upstream ${host} can be reached again, or its gateway was started again and has not asked it since.`,
  outbox_full: () => 'There is room again for calls and for payments without an outcome.',
  database_away: () => 'The database can be reached and written again.',
  appends_refused: () => 'The database takes appends again.',
  gateway_not_ready: (host) => `The gateway on ${host} is ready again, or has stopped.`,
  replica_unused: (replica) =>
    `The replica ${replica} answers reads again, or its gateway was started without it.`,
  anchors_behind: (anchor) => `The anchor ${anchor} has the newest checkpoints.`,
  low_gas: (key) => `The key of ${key} has enough ether again.`,
  certificate_trouble: (host) => `${host} presents a certificate that is accepted.`,
  clock_trouble: (host) => `The clocks of ${host} and of the database agree again.`,
  no_current_rate: (token) => `${token} has a current rate again and is offered.`,
  rate_old: (token) => `The fixed rate of ${token} is a present one.`,
  listing_gone: (host) => `${host} lists jobs of this gateway again.`,
  listing_missing: (service) => `The jobs of ${service} are listed again.`,
  discovery_unknown: (host) => `The answers of ${host} are conclusive again.`,
  trigger_behind: (trigger) => `The trigger ${trigger} has caught up.`,
  factor_guessed: (operator) => `No code of ${operator} has been guessed for a day.`,
};

/** The message to a receiver once a condition holds no longer. A kind of another version is named. */
export function resolvedText(kind: string, subject: string): string {
  return Object.hasOwn(wellAgain, kind)
    ? wellAgain[kind as AlertKind](subject)
    : `${kind} has ended${subject === '' ? '' : `: ${subject}`}.`;
}

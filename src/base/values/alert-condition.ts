/** What the operator is alerted about while it lasts: each kind is firing, and later resolved. */
type AlertKind =
  | 'dead_letters'
  | 'runner_paused'
  | 'broker_trouble'
  | 'circuit_open'
  | 'database_away'
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

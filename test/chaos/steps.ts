/** The named steps of the paid flow at which a process can be killed or frozen. */
export const gatewaySteps = [
  'before_verify',
  'after_verify',
  'before_start_append',
  'during_start_append',
  'after_start_append',
  'before_settle',
  'after_settle',
  'during_confirmation',
  'during_resolution',
  'before_outcome_append',
  'during_outcome_append',
  'after_outcome_append',
  'before_handout_append',
  'during_handout_append',
  'after_handout_append',
  'before_push',
  'after_push',
  'before_completion_append',
  'during_completion_append',
  'after_completion_append',
] as const;

/** Those of top-ups, completions, spends and payouts, in runs that have them. */
export const creditSteps = [
  'before_top_up_append',
  'during_top_up_append',
  'after_top_up_append',
  'before_admission_append',
  'during_admission_append',
  'after_admission_append',
  'before_acceptance_append',
  'during_acceptance_append',
  'after_acceptance_append',
  'before_landing',
  'after_landing',
  'before_upstream',
  'after_upstream',
  'during_stream',
  'before_earning_append',
  'during_earning_append',
  'after_earning_append',
  'before_charge_append',
  'during_charge_append',
  'after_charge_append',
  'before_release_append',
  'during_release_append',
  'after_release_append',
  'before_claim',
  'after_claim',
  'before_payout_append',
  'during_payout_append',
  'after_payout_append',
] as const;

/** Those of routes, in runs that have them: what a payment and what an attempt costs is on record before the upstream is asked. */
export const routeSteps = [
  'before_route_upstream',
  'after_route_upstream',
  'during_route_stream',
  'before_answer_append',
  'during_answer_append',
  'after_answer_append',
  'before_repeat_append',
  'during_repeat_append',
  'after_repeat_append',
] as const;

/** Where a runner has a call and has not answered yet. */
export type RunnerStep = 'pushed' | 'leased';

export type Step =
  | (typeof gatewaySteps)[number]
  | (typeof creditSteps)[number]
  | (typeof routeSteps)[number]
  | RunnerStep;

export type Phase =
  | 'start'
  | 'outcome'
  | 'handout'
  | 'completion'
  | 'top_up'
  | 'admission'
  | 'acceptance'
  | 'earning'
  | 'charge'
  | 'release'
  | 'payout'
  | 'answer'
  | 'repeat';

const phaseOf: Readonly<Record<string, Phase>> = {
  settlement_started: 'start',
  payment_settled: 'outcome',
  settlement_failed: 'outcome',
  settlement_unknown: 'outcome',
  completed: 'completion',
  dead_lettered: 'completion',
  delivered: 'handout',
  credit_topped_up: 'top_up',
  chat_admitted: 'admission',
  spend_accepted: 'acceptance',
  spend_earned: 'earning',
  chat_completed: 'charge',
  chat_failed: 'charge',
  spend_released: 'release',
  spend_paid_out: 'payout',
  spend_failed: 'payout',
  upstream_answered: 'answer',
  upstream_repeated: 'repeat',
};

/** The phases that an append belongs to, by its event types. A pushed call is delivered and completed in one append. */
export function phasesOf(types: ReadonlySet<string>): ReadonlySet<Phase> {
  const phases = new Set([...types].flatMap((type) => phaseOf[type] ?? []));
  if (phases.has('completion')) phases.delete('handout');
  return phases;
}

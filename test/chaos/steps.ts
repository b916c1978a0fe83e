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

/** Where a runner has a call and has not answered yet. */
export type RunnerStep = 'pushed' | 'leased';

export type Step = (typeof gatewaySteps)[number] | RunnerStep;

export type Phase = 'start' | 'outcome' | 'handout' | 'completion';

const phaseOf: Readonly<Record<string, Phase>> = {
  settlement_started: 'start',
  payment_settled: 'outcome',
  settlement_failed: 'outcome',
  settlement_unknown: 'outcome',
  completed: 'completion',
  dead_lettered: 'completion',
  delivered: 'handout',
};

/** The phases that an append belongs to, by its event types. A pushed call is delivered and completed in one append. */
export function phasesOf(types: ReadonlySet<string>): ReadonlySet<Phase> {
  const phases = new Set([...types].flatMap((type) => phaseOf[type] ?? []));
  if (phases.has('completion')) phases.delete('handout');
  return phases;
}

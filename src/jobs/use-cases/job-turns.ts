import type { JobTurn } from '../../calls/store/calls.ts';
import type { JobsContext } from './context.ts';

/** The jobs whose policy gives them a priority or a limit. */
export function jobTurns({ settings }: Pick<JobsContext, 'settings'>): JobTurn[] {
  const policies = [...settings.jobPolicies.values()];
  return policies.filter(({ priority, maxConcurrent }) => priority !== 0 || maxConcurrent !== undefined);
}

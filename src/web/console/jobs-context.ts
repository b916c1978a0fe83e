import type { JobsContext } from '../../jobs/use-cases/context.ts';
import type { OperatorVisit } from './site.ts';

/** The jobs of the configuration in force, for sections that are offered only where some are sold. */
export function contextOf({ site }: OperatorVisit): JobsContext {
  if (!site.jobs) throw new Error('this gateway sells no jobs');
  return site.jobs();
}

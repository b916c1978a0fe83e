import type { JobsContext } from '../../jobs/use-cases/context.ts';
import type { OperatorVisit } from './visit.ts';
import type { ChatContext } from '../../chat/use-cases/context.ts';

/** The jobs of the configuration in force, for sections that are offered only if some are sold. */
export function jobsOf({ site }: OperatorVisit): JobsContext {
  if (!site.jobs) throw new Error('this gateway sells no jobs');
  return site.jobs();
}

/** The models of the configuration in force. The section is offered only if there are some. */
export function chatOf({ site }: OperatorVisit): ChatContext {
  if (!site.chat) throw new Error('this gateway sells no models');
  return site.chat();
}

import type { FastifyRequest } from 'fastify';
import type { JobsContext } from '../../jobs/context.ts';
import { addressBudgetKey } from '../../runtime/budget.ts';
import { addressOf } from '../server/request-values.ts';

/** Counts the request against its client, as one that pays nothing. Returns how long the client has to wait, in seconds. */
export function charge({ budget }: Pick<JobsContext, 'budget'>, request: FastifyRequest): number {
  const one = budget.open();
  one.take(addressBudgetKey(addressOf(request)));
  return one.waitSecs();
}

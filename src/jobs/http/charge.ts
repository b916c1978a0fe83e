import type { FastifyRequest } from 'fastify';
import type { JobsContext } from '../use-cases/context.ts';
import { addressBudgetKey } from '../../base/runtime/budget.ts';
import { addressOf } from '../../base/http/request-values.ts';

/** Counts the request against its client, as one that pays nothing. Returns how long the client has to wait, in seconds. */
export function charge({ budget }: Pick<JobsContext, 'budget'>, request: FastifyRequest): number {
  const one = budget.open();
  one.take(addressBudgetKey(addressOf(request)));
  return one.waitSecs();
}

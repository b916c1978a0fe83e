import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JobsContext } from '../use-cases/context.ts';
import { addressBudgetKey } from '../../base/runtime/budget.ts';
import { addressOf } from '../../base/http/request-values.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';

/** Charges a request to its client's address, as one that pays nothing, before its body is read. */
export function chargeFirst(current: () => Pick<JobsContext, 'budget'>) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const charge = current().budget.open();
    charge.take(addressBudgetKey(addressOf(request)));
    const retryAfterSecs = charge.waitSecs();
    if (retryAfterSecs > 0) sendRefusal(request, reply, 'rate_limited', { retryAfterSecs });
    else done();
  };
}

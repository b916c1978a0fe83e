import type { FastifyInstance, FastifyRequest } from 'fastify';
import { addressBudgetKey, requestsOfBytes } from '../../base/runtime/budget.ts';
import { RefusedRequestError } from '../../base/http/request-bodies.ts';
import { addressOf, declaredBytesOf } from '../../base/http/request-values.ts';
import type { Identity } from '../use-cases/context.ts';
import { sessionOf } from '../use-cases/sessions.ts';

const bodyless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Charges each request of an app that may have a body, such as the form of a page, before anything of it is read: to its session, so that
 * neighbours at one address do not spend the budget of a user, and without one to its client's address. None is refunded.
 */
export function chargeVisits(app: FastifyInstance, identity: Identity): void {
  app.addHook('onRequest', (request, _reply, done) => {
    if (bodyless.has(request.method)) return done();
    const charge = identity.budget.open();
    charge.take(budgetKey(identity, request), 1 + requestsOfBytes(mostBytes(request)));
    const retryAfterSecs = charge.waitSecs();
    if (retryAfterSecs > 0) done(new RefusedRequestError('too_many_attempts', retryAfterSecs));
    else done();
  });
}

function budgetKey(identity: Identity, request: FastifyRequest): string {
  const session = sessionOf(identity, request.headers.cookie);
  return session === undefined ? addressBudgetKey(addressOf(request)) : `session:${session}`;
}

/** A body that states no length may have as many as its route takes. */
function mostBytes({ headers, routeOptions: { bodyLimit } }: FastifyRequest): number {
  return headers['transfer-encoding'] === undefined
    ? Math.min(declaredBytesOf(headers), bodyLimit)
    : bodyLimit;
}

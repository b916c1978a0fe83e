import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OperatorScope } from '../../base/values/operator-scope.ts';
import { findOperator } from '../use-cases/operator-tokens.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import type { OperatorToken } from '../store/operator-tokens.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { bearerToken } from '../../base/http/request-values.ts';

export type OperatorAccess =
  | { readonly kind: 'operator'; readonly operator: OperatorToken }
  /** `unauthorized`: no valid token. `forbidden`: a token without the scope. */
  | { readonly kind: 'refused'; readonly code: 'unauthorized' | 'forbidden' };

/** The operator of the request's token, when the token has the scope. The caller answers a refusal with its code. */
export async function authorizeOperator(
  ledger: { readonly db: LedgerDatabase },
  request: FastifyRequest,
  scope: OperatorScope,
): Promise<OperatorAccess> {
  const operator = await findOperator(ledger, bearerToken(request));
  if (operator?.scopes.includes(scope)) return { kind: 'operator', operator };
  return { kind: 'refused', code: operator ? 'forbidden' : 'unauthorized' };
}

/** For routes that take a body: the operator is authorized before the body is read. */
export function operatorsOf(ledger: { readonly db: LedgerDatabase }) {
  const operators = new WeakMap<FastifyRequest, OperatorToken>();
  return {
    /** The hook `onRequest` of a route that requires this scope. */
    require: (scope: OperatorScope) => async (request: FastifyRequest, reply: FastifyReply) => {
      const access = await authorizeOperator(ledger, request, scope);
      if (access.kind === 'refused')
        return sendRefusal(request, reply.header('cache-control', 'no-store'), access.code);
      operators.set(request, access.operator);
    },
    of(request: FastifyRequest): OperatorToken {
      const operator = operators.get(request);
      if (!operator) throw new Error('a route for operators was not authorized');
      return operator;
    },
  };
}

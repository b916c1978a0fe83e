import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OperatorScope } from '../../domain/identity/operator-scope.ts';
import { findOperator } from '../../identity/operator-tokens.ts';
import type { LedgerDatabase } from '../../store/database.ts';
import type { OperatorToken } from '../../store/operator-tokens.ts';
import { sendRefusal } from '../server/errors.ts';
import { bearerToken } from '../server/request-values.ts';

/** The operator of the request's token. Undefined when the request was refused: no valid token, or another scope. */
export async function authorizeOperator(
  ledger: { readonly db: LedgerDatabase },
  request: FastifyRequest,
  reply: FastifyReply,
  scope: OperatorScope,
): Promise<OperatorToken | undefined> {
  const operator = await findOperator(ledger, bearerToken(request));
  if (operator?.scopes.includes(scope)) return operator;
  sendRefusal(request, reply, operator ? 'forbidden' : 'unauthorized');
  return undefined;
}

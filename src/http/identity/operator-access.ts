import type { FastifyRequest } from 'fastify';
import type { OperatorScope } from '../../domain/identity/operator-scope.ts';
import { findOperator } from '../../identity/operator-tokens.ts';
import type { LedgerDatabase } from '../../store/database.ts';
import type { OperatorToken } from '../../store/operator-tokens.ts';
import { bearerToken } from '../server/request-values.ts';

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

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ZodType } from 'zod';
import type { OperatorScope } from '../../base/values/operator-scope.ts';
import { findOperator } from '../use-cases/operator-tokens.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import type { OperatorToken } from '../store/operator-tokens.ts';
import { sendInvalid, sendRefusal } from '../../ledger/http/errors.ts';
import { bearerToken } from '../../base/http/request-values.ts';

const maxBodyBytes = 65_536;

type OperatorAccess =
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

/** A request of an authorized operator. `parsed`: its query; of a POST, its body. */
interface OperatorRequest<T> {
  readonly parsed: T;
  readonly operator: OperatorToken;
  /** The parameter of its path; empty if it has none. */
  readonly param: string;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export type OperatorRoute = ReturnType<typeof operatorRoutesOn>;

/** Adds routes that require a token with a scope, before a body is read. Their answers are never cached. */
export function operatorRoutesOn(app: FastifyInstance, ledger: { readonly db: LedgerDatabase }) {
  const operators = new WeakMap<FastifyRequest, OperatorToken>();
  return <T>(
    method: 'GET' | 'POST',
    url: string,
    scope: OperatorScope,
    schema: ZodType<T>,
    handle: (request: OperatorRequest<T>) => Promise<FastifyReply>,
  ): void => {
    app.route<{ Params: Readonly<Record<string, string>> }>({
      method,
      url,
      bodyLimit: maxBodyBytes,
      onRequest: async (request, reply) => {
        reply.header('cache-control', 'no-store');
        const access = await authorizeOperator(ledger, request, scope);
        if (access.kind === 'refused') return sendRefusal(request, reply, access.code);
        operators.set(request, access.operator);
      },
      handler: async (request, reply) => {
        const operator = operators.get(request);
        if (!operator) throw new Error('a route for operators was not authorized');
        const parsed = schema.safeParse(method === 'GET' ? request.query : request.body);
        if (!parsed.success) return sendInvalid(request, reply, parsed.error);
        const [param = ''] = Object.values(request.params);
        return handle({ parsed: parsed.data, operator, param, request, reply });
      },
    });
  };
}

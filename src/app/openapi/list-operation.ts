import type { z } from 'zod';
import type { RefusalCode } from '../../base/errors/refusal.ts';
import type { Operation } from './operation.ts';

export interface ListOperation extends Pick<Operation, 'path' | 'id' | 'tag' | 'summary'> {
  /** The scope that the operator's token needs. */
  readonly scope: string;
  readonly description?: string;
  readonly query: z.ZodObject;
  readonly schema: z.ZodType;
  /** Refusals besides those of every list. */
  readonly refusals?: readonly RefusalCode[];
}

/** The refusals of every route that requires an operator token. */
export const operatorRefusals = [
  'unauthorized',
  'forbidden',
  'internal_error',
  'ledger_unavailable',
  'ledger_inconsistent',
] as const satisfies readonly RefusalCode[];

/** A list for operators, in pages. */
export function listOperation({
  scope,
  description = '',
  schema,
  refusals = [],
  ...described
}: ListOperation): Operation {
  return {
    ...described,
    method: 'get',
    description: `Requires the scope \`${scope}\`. ${description}`.trim(),
    security: 'operatorToken',
    answers: [{ status: 200, description: 'One page.', schema }],
    refusals: ['invalid_request', ...operatorRefusals, ...refusals],
  };
}

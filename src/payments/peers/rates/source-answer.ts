import type { RateProblem } from '../../../base/values/round.ts';
import { isExecutionFailure } from '../../../base/peers/rpc/eth-call.ts';
import type { RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';

/** A time in Unix seconds that a contract or a block cannot have: above it, it is not a time. */
export const beyondSecs = 1n << 40n;

export function problem(of: RateProblem): { readonly kind: 'problem'; readonly problem: RateProblem } {
  return { kind: 'problem', problem: of };
}

/** The reading of a contract: a value, or why there is none. */
export type Read<T> =
  | { readonly kind: 'read'; readonly value: T }
  | { readonly kind: 'problem'; readonly problem: RateProblem };

/** A node's failure as a source's problem. */
export function problemOf({ cause, error }: RpcUnavailable): RateProblem {
  if (cause === 'wrong_chain' || cause === 'too_large') return cause;
  // a contract that reverts has not what the configuration says of it
  return cause === 'malformed' || isExecutionFailure(error) ? 'malformed' : 'unreachable';
}

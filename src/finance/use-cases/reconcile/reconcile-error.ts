import { type RpcAnswer, RpcError, type RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';

export type ReconcileErrorCode =
  | 'no_network'
  | 'no_rpc'
  | 'wrong_chain'
  | 'logs_refused'
  | 'logs_incomplete'
  | 'answers_differ'
  | 'rpc_unavailable'
  | 'block_not_final'
  | 'no_checkpoint'
  | 'no_books'
  | 'ledger_too_short'
  | 'ledger_unreadable'
  | 'resume_file';

/** A reconciliation that could not be made, because the ledger or a chain could not be read. */
export class ReconcileError extends Error {
  override readonly name = 'ReconcileError';
  readonly code: ReconcileErrorCode;

  constructor(code: ReconcileErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * The value of an answer.
 * @param what for the message: what was requested
 * @throws ReconcileError if the RPC did not answer
 */
export function answered<T>(network: string, what: string, answer: RpcAnswer<T>): T {
  if (answer.kind === 'answer') return answer.value;
  throw unanswered(network, what, answer);
}

export function unanswered(network: string, what: string, answer: RpcUnavailable): ReconcileError {
  const { cause } = answer;
  if (cause === 'wrong_chain')
    return new ReconcileError(
      'wrong_chain',
      `the RPC for ${network} serves another chain. Nothing was stored: correct its URL`,
    );
  if (cause === 'answers_differ')
    return new ReconcileError(
      'answers_differ',
      `the RPC for ${network} gave two different answers for ${what}: it may consist of several nodes that disagree. Nothing was stored`,
    );
  return new ReconcileError(
    'rpc_unavailable',
    `the RPC for ${network} did not answer for ${what}: ${causeText(answer)}. Nothing was stored`,
  );
}

/** Our cause, with the node's message if it has one. For the operator. */
export function causeText({ cause, error }: RpcUnavailable): string {
  if (!(error instanceof RpcError)) return cause;
  return `${cause}: ${error.reason.replaceAll(/[^ -~]/g, '?')}`;
}

import { type RpcAnswer, RpcError, type RpcUnavailable } from '../peers/rpc/json-rpc.ts';

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
  | 'ledger_too_short'
  | 'ledger_unreadable'
  | 'resume_file';

/** Why nothing can be said: not a difference between ledger and chain, but one of both that could not be read. */
export class ReconcileError extends Error {
  override readonly name = 'ReconcileError';
  readonly fault: ReconcileErrorCode;

  constructor(fault: ReconcileErrorCode, words: string) {
    super(words);
    this.fault = fault;
  }
}

/** The value of an answer. Throws a ReconcileError that says what was asked, and what came instead. */
export function answered<T>(network: string, what: string, answer: RpcAnswer<T>): T {
  if (answer.kind === 'answer') return answer.value;
  throw unanswered(network, what, answer);
}

export function unanswered(network: string, what: string, answer: RpcUnavailable): ReconcileError {
  const { cause } = answer;
  if (cause === 'wrong_chain')
    return new ReconcileError(
      'wrong_chain',
      `the RPC for ${network} serves another chain: nothing it says is about this one`,
    );
  if (cause === 'answers_differ')
    return new ReconcileError(
      'answers_differ',
      `the RPC for ${network} answered differently the second time, asked for ${what}: it may be several nodes that do not agree. Nothing was stored`,
    );
  return new ReconcileError(
    'rpc_unavailable',
    `the RPC for ${network} does not tell ${what}: ${causeWords(answer)}. Nothing was stored`,
  );
}

/** Our own word, with the node's where it has one: for the operator's eyes. */
export function causeWords({ cause, error }: RpcUnavailable): string {
  if (!(error instanceof RpcError)) return cause;
  return `${cause}: ${error.reason.replaceAll(/[^ -~]/g, '?')}`;
}

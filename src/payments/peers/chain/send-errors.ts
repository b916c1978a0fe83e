import { RpcError, type RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';

/** Nodes tell these cases apart only by their messages: those of geth, Nethermind, Erigon, Besu and anvil. */
const knownWords = /already known|already imported|known transaction|alreadyknown/i;
const takenWords = /nonce (?:is )?too low|old ?nonce|nonce .*already (?:been )?used|invalid nonce/i;
const replacementWords = /replacement transaction|underpriced/i;

/** The node has this very transaction already. */
export function isKnown({ error }: RpcUnavailable): boolean {
  return error instanceof RpcError && knownWords.test(error.reason);
}

/** Without an answer the transaction may have arrived nevertheless. */
export function mayHaveArrived(answer: RpcUnavailable): boolean {
  return isKnown(answer) || !(answer.error instanceof RpcError);
}

/** The nonce has a pending transaction, which this one does not outbid. */
export function isReplacement({ error }: RpcUnavailable): boolean {
  return error instanceof RpcError && replacementWords.test(error.reason);
}

/** Another transaction has the nonce, pending or mined. */
export function isTaken(answer: RpcUnavailable): boolean {
  const { error } = answer;
  return isReplacement(answer) || (error instanceof RpcError && takenWords.test(error.reason));
}

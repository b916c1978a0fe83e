import type { Address, Caip2, Hex } from '../domain/values/primitives.ts';
import type { Chain, Transfer, TransfersAnswer } from '../peers/chain/chain.ts';

/** Why a transaction cannot be recorded. */
export type NoTransfers =
  | 'network_unknown'
  | 'wrong_chain'
  | 'chain_unavailable'
  | 'transaction_unknown'
  | 'transaction_failed'
  | 'not_final';

export interface Refused<Code extends string> {
  readonly kind: 'refused';
  readonly code: Code;
  /** The value that led to the refusal. */
  readonly detail?: string | undefined;
}

export function refused<Code extends string>(code: Code, detail?: string): Refused<Code> {
  return { kind: 'refused', code, detail };
}

/** The transfers of a transaction, and its block. */
export interface MinedTransfers {
  readonly kind: 'mined';
  readonly blockNumber: bigint;
  readonly blockHash: Hex;
  readonly transfers: readonly Transfer[];
  /** The payment authorizations that moved some of them. */
  readonly authorizations: Extract<TransfersAnswer, { kind: 'mined' }>['authorizations'];
}

/** The configured chains, by network. */
export type Chains = ReadonlyMap<string, Chain>;

/** The transfers of a transaction that is in a block, final or not: of these tokens, or of any where they are left out. */
export async function readMined(
  chains: Chains,
  network: Caip2,
  transaction: Hex,
  assets?: readonly Address[],
): Promise<MinedTransfers | Refused<NoTransfers>> {
  const chain = chains.get(network);
  if (!chain) return refused('network_unknown', network);
  const read = await chain.readTransfers(transaction, assets);
  switch (read.kind) {
    case 'mined':
      return read;
    case 'reverted':
      return refused('transaction_failed', `block ${read.blockNumber}`);
    case 'unavailable':
      return unavailable(read.cause, network);
    case 'pending':
      return refused('not_final', 'it is not in a block yet');
    case 'absent':
      return refused('transaction_unknown');
  }
}

/** Undefined where the block is final and canonical. */
export async function requireFinal(
  chains: Chains,
  network: Caip2,
  { blockNumber, blockHash }: MinedTransfers,
): Promise<Refused<NoTransfers> | undefined> {
  const chain = chains.get(network);
  if (!chain) return refused('network_unknown', network);
  const finalized = await chain.finalizedBlock();
  if (finalized.kind === 'unavailable') return unavailable(finalized.cause, network);
  const { number } = finalized.block;
  if (number < blockNumber)
    return refused('not_final', `it is in block ${blockNumber}, and the last final block is ${number}`);
  const canonical = await chain.blockHashAt(blockNumber);
  if (canonical.kind === 'unavailable') return unavailable(canonical.cause, network);
  return canonical.hash === blockHash
    ? undefined
    : refused('not_final', `block ${blockNumber} was reorged out`);
}

function unavailable(cause: string, network: Caip2): Refused<NoTransfers> {
  return cause === 'wrong_chain' ? refused('wrong_chain', network) : refused('chain_unavailable', cause);
}

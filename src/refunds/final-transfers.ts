import type { Caip2, Hex } from '../domain/values/primitives.ts';
import type { Chain, Transfer } from '../peers/chain/chain.ts';

/** Why a transaction says nothing that could be recorded. */
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
  /** What it was found by, in few words. */
  readonly detail?: string | undefined;
}

export function refused<Code extends string>(code: Code, detail?: string): Refused<Code> {
  return { kind: 'refused', code, detail };
}

/** What a transaction moved, and where it stands. */
export interface MinedTransfers {
  readonly kind: 'mined';
  readonly blockNumber: bigint;
  readonly blockHash: Hex;
  readonly transfers: readonly Transfer[];
}

/** The chains that can be asked, by network. */
export type Chains = ReadonlyMap<string, Chain>;

/** What a transaction moved, final or not. */
export async function readMined(
  chains: Chains,
  network: Caip2,
  transaction: Hex,
): Promise<MinedTransfers | Refused<NoTransfers>> {
  const chain = chains.get(network);
  if (!chain) return refused('network_unknown', network);
  const read = await chain.readTransfers(transaction);
  switch (read.kind) {
    case 'mined':
      return read;
    case 'reverted':
      return refused('transaction_failed', `block ${read.blockNumber}`);
    case 'unavailable':
      return unavailable(read.cause, network);
    case 'absent': {
      const heard = await chain.knowsTransaction(transaction);
      if (heard.kind === 'unavailable') return unavailable(heard.cause, network);
      return heard.isKnown ? refused('not_final', 'it is in no block yet') : refused('transaction_unknown');
    }
  }
}

/** Refused unless the block is final, and the chain's own at its height. */
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
    return refused('not_final', `it is in block ${blockNumber}, and the last final one is ${number}`);
  const canonical = await chain.blockHashAt(blockNumber);
  if (canonical.kind === 'unavailable') return unavailable(canonical.cause, network);
  return canonical.hash === blockHash
    ? undefined
    : refused('not_final', `block ${blockNumber} is another one by now`);
}

function unavailable(cause: string, network: Caip2): Refused<NoTransfers> {
  return cause === 'wrong_chain' ? refused('wrong_chain', network) : refused('chain_unavailable', cause);
}

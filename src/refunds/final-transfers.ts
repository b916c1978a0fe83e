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
  { blockNumber, blockHash }: { readonly blockNumber: bigint; readonly blockHash: string },
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

/** Chains that answer each question once: the refunds of a batch ask the same ones. */
export function rememberAnswers(chains: Chains): Chains {
  return new Map(
    [...chains].map(([network, chain]) => [
      network,
      {
        ...chain,
        finalizedBlock: remembered(() => chain.finalizedBlock()),
        blockHashAt: remembered((number) => chain.blockHashAt(number)),
        readSpentNonces: remembered((sender, blockHash) => chain.readSpentNonces(sender, blockHash)),
        readTransfers: remembered((transaction, assets) => chain.readTransfers(transaction, assets)),
        readCost: remembered((transaction) => chain.readCost(transaction)),
      },
    ]),
  );
}

function remembered<Asked extends readonly (Hex | bigint | readonly Hex[] | undefined)[], T>(
  read: (...asked: Asked) => Promise<T>,
): (...asked: Asked) => Promise<T> {
  const known = new Map<string, Promise<T>>();
  return (...asked) => {
    const key = asked.join(' ');
    const answer = known.get(key) ?? read(...asked);
    known.set(key, answer);
    return answer;
  };
}

function unavailable(cause: string, network: Caip2): Refused<NoTransfers> {
  return cause === 'wrong_chain' ? refused('wrong_chain', network) : refused('chain_unavailable', cause);
}

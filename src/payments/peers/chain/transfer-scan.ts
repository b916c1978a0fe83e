import { toFunctionSelector } from 'viem/utils';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import type { Evidence } from '../../rules/chain-transfer.ts';
import { type Ask, askBlock, askTaggedBlock, type Block } from './blocks.ts';
import {
  addressWord,
  ethCall,
  hexBytes,
  isExecutionFailure,
  isWithoutState,
} from '../../../base/peers/rpc/eth-call.ts';
import { createRpc, type RpcAnswer, unavailable } from '../../../base/peers/rpc/json-rpc.ts';
import { askRightChain } from '../../../base/peers/rpc/chain-id.ts';
import { withRetries } from '../../../base/peers/rpc/retries.ts';
import type { BlockPlace } from './transactions.ts';
import { readTransactionTransfers, type TransferSelection } from './transaction-transfers.ts';
import { readChunk, type TransferQuery } from './transfer-chunk.ts';
import type { ChainOptions } from './chain.ts';

/** Which transfers of a transaction are wanted, and its block, if that is known. */
export interface WantedTransfers extends TransferSelection {
  readonly transaction: Hex;
  readonly place?: BlockPlace | undefined;
}

export type ChainScanner = ReturnType<typeof createScanner>;

/**
 * Reads one chain for reconciling. Answers come from the configured chain, or are unavailable. `timeoutMs` is of one request, each time it is sent.
 * @throws TypeError if the URL is not one
 */
export function createScanner({
  network,
  chainId,
  rpcUrl,
  timeoutMs,
}: ChainOptions & { readonly network: string }) {
  const rpc = createRpc(rpcUrl);
  const askOnce = askRightChain(rpc, chainId);
  const ask: Ask = (call) => withRetries(() => askOnce(call, timeoutMs));
  return {
    network,
    finalizedBlock: () => askTaggedBlock(ask, 'finalized'),
    /** The canonical block at a height; null if there is none. */
    blockAt: (number: bigint) => askBlock(ask, number),
    firstBlockSince: (timestampSecs: number, last: Block) => firstBlockSince(ask, timestampSecs, last),
    /** Unavailable with `answers_differ` if the chain changed during the reading. */
    transfers: (query: TransferQuery, from: bigint, to: bigint) => readChunk(ask, network, query, from, to),
    /** An address's balance at a block; undefined if the node has no state of that block. */
    async balanceAt(asset: Address, holder: Address, blockHash: Hex): Promise<RpcAnswer<bigint | undefined>> {
      const data = `${balanceSelector}${addressWord(holder).slice(2)}` as const;
      const at = { blockHash, requireCanonical: true } as const;
      const answer = await ask(ethCall({ to: asset, data }, word, at));
      if (answer.kind === 'answer') return { kind: 'answer', value: answer.value ?? 0n };
      return isWithoutState(answer) ? { kind: 'answer', value: undefined } : answer;
    },
    /** `decimals()` at the latest block; undefined if the contract lacks it. */
    async decimals(asset: Address): Promise<RpcAnswer<number | undefined>> {
      const answer = await ask(ethCall({ to: asset, data: decimalsSelector }, word));
      if (answer.kind === 'answer') {
        const isSmall = answer.value !== undefined && answer.value <= 255n;
        return { kind: 'answer', value: isSmall ? Number(answer.value) : undefined };
      }
      return isExecutionFailure(answer.error) ? { kind: 'answer', value: undefined } : answer;
    },
    /** The selected transfers of a transaction. */
    evidence: (wanted: WantedTransfers) => readEvidence(ask, network, wanted),
    close: () => rpc.close(),
  };
}

const balanceSelector = toFunctionSelector('balanceOf(address)');
const decimalsSelector = toFunctionSelector('decimals()');

/** An ABI word; undefined if the address has no contract. */
const word = hexBytes
  .refine((text) => text === '0x' || text.length === 66)
  .transform((text) => (text === '0x' ? undefined : BigInt(text)));

/** The first block at a time or later, up to `last`; undefined if `last` is older. */
async function firstBlockSince(
  ask: Ask,
  timestampSecs: number,
  last: Block,
): Promise<RpcAnswer<Block | undefined>> {
  if (last.timestampSecs < timestampSecs) return { kind: 'answer', value: undefined };
  let found = last;
  for (let low = 0n; low < found.number;) {
    const middle = (low + found.number) / 2n;
    const answer = await askBlock(ask, middle);
    if (answer.kind === 'unavailable') return answer;
    if (answer.value === null) return unavailable('missing_block');
    if (answer.value.timestampSecs >= timestampSecs) found = answer.value;
    else low = middle + 1n;
  }
  return { kind: 'answer', value: found };
}

async function readEvidence(
  ask: Ask,
  network: string,
  { transaction, place, ...selection }: WantedTransfers,
): Promise<RpcAnswer<Evidence>> {
  const read = await readTransactionTransfers(ask, transaction, selection, place);
  if (read.kind === 'unavailable') return read;
  if (read.kind !== 'mined') return { kind: 'answer', value: { kind: read.kind } };
  const { blockNumber, blockHash, authorizations } = read;
  const block = { network, transaction, blockNumber, blockHash };
  const transfers = read.transfers.map(({ value: amount, asset, from, to, logIndex }) => {
    return { ...block, asset, from, to, amount, logIndex };
  });
  return { kind: 'answer', value: { kind: 'mined', transfers, authorizations } };
}

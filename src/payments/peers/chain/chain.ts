import { toFunctionSelector } from 'viem/utils';
import type { ExpectedTransfer } from '../../rules/payment.ts';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import { type Ask, askBlock, askTaggedBlock, type BlockAnswer, type BlockHashAnswer } from './blocks.ts';
import { createRpc, type RpcAnswer, type RpcUnavailable } from '../../../base/peers/rpc/json-rpc.ts';
import { type BlockTag, codeCall, ethCall, hexBytes, shortCall } from '../../../base/peers/rpc/eth-call.ts';
import { safeQuantity } from '../../../base/peers/rpc/rpc-values.ts';
import { askRightChain, chainIdCall } from '../../../base/peers/rpc/chain-id.ts';
import type { AuthorizationFound, SettlementAnswer } from './schemes/scheme.ts';
import { chainSchemes } from './schemes/schemes.ts';
import { knownTransactionCall, type SignedBy, signedByCall } from './transactions.ts';
import { type CostReading, readCost } from './transaction-cost.ts';
import type { SearchedBlocks } from './find-log.ts';
import { findTransfers, type FoundTransfer, type WantedTransfers } from './find-transfers.ts';
import { readTransactionTransfers, type TransactionTransfers } from './transaction-transfers.ts';
import { createBoundedCache } from '../../../base/values/bounded-cache.ts';
import { poll } from '../../../base/runtime/poll.ts';

export type { Block, BlockAnswer, BlockHashAnswer } from './blocks.ts';
export type { AuthorizationFound, SettlementAnswer } from './schemes/scheme.ts';
export type { Transfer } from './transfers.ts';

/** Of a Safe: the number of its transactions, which is not that of its account. */
const nonceSelector = toFunctionSelector('nonce()');
const nonceWord = hexBytes
  .refine((text) => text.length === 66 && BigInt(text) <= BigInt(Number.MAX_SAFE_INTEGER))
  .transform((text) => Number(BigInt(text)));
/** An account whose key signs for it and that lends its code from a contract (EIP-7702). */
const delegation = '0xef0100';

export type AuthorizationAnswer = { readonly kind: 'answer'; readonly used: boolean } | RpcUnavailable;

export type ChainIdAnswer = { readonly kind: 'answer'; readonly matches: boolean } | RpcUnavailable;

export type TransfersAnswer = TransactionTransfers | RpcUnavailable;

export interface Chain {
  readonly rpcUrl: string;
  /**
   * Whether the payer's authorization is used up, settled or canceled: at the latest block, or at exactly this one.
   * Unavailable if the node does not have that block, or not as canonical.
   */
  isUsed(expected: ExpectedTransfer, blockHash?: Hex): Promise<AuthorizationAnswer>;
  /** Whether this transaction (lower-case hash) carries the expected transfer. */
  findSettlement(transaction: Hex, expected: ExpectedTransfer): Promise<SettlementAnswer>;
  /** Every transfer in this transaction (lower-case hash), in the order of their logs: of these tokens, or of any. */
  readTransfers(transaction: Hex, assets?: readonly Address[]): Promise<TransfersAnswer>;
  /** What this transaction (lower-case hash) cost its sender, once its block is final. */
  readCost(transaction: Hex): Promise<CostReading>;
  /** Asks until the answer is `paid`, `ambiguous` or `contradicted`, or `waitMs` is over; returns the last answer. */
  waitForSettlement(transaction: Hex, expected: ExpectedTransfer, waitMs: number): Promise<SettlementAnswer>;
  /**
   * What became of an authorization, without knowing its transaction: looks through the logs from a block older
   * than `sinceSecs`, by the chain's clock, up to the latest. Sends up to 256 requests, each within the time-out; is
   * unavailable where more would be needed: asked again, it continues after the blocks that it has searched.
   */
  findAuthorization(expected: ExpectedTransfer, sinceSecs: number): Promise<AuthorizationFound>;
  latestBlock(): Promise<BlockAnswer>;
  /** Whether the node knows a transaction, mined or pending. */
  knowsTransaction(
    transaction: Hex,
  ): Promise<{ readonly kind: 'answer'; readonly isKnown: boolean } | RpcUnavailable>;
  /** Who signed a transaction, and under which nonce; undefined if the node does not know it, mined or pending. */
  readSignedBy(transaction: Hex): Promise<RpcAnswer<SignedBy | undefined>>;
  /** How many nonces an account, or a Safe, has used up to exactly this block. */
  readSpentNonces(sender: Address, blockHash: Hex): Promise<RpcAnswer<number>>;
  /** The transfers of this many atoms to an address in a range of blocks, both ends included. */
  findTransfers(
    wanted: WantedTransfers,
    fromBlock: bigint,
    toBlock: bigint,
  ): Promise<RpcAnswer<readonly FoundTransfer[]>>;
  finalizedBlock(): Promise<BlockAnswer>;
  /** The hash of the canonical block at this height. */
  blockHashAt(number: bigint): Promise<BlockHashAnswer>;
  /** Whether the RPC serves the chain it is configured for. */
  checkChainId(): Promise<ChainIdAnswer>;
  /** Waits for running requests, then drops the connections; waits for settlements end early. */
  close(): Promise<void>;
}

export interface ChainOptions {
  readonly chainId: number;
  readonly rpcUrl: string;
  /** Of one request. */
  readonly timeoutMs: number;
}

/**
 * Reads one EVM chain over raw JSON-RPC: no retries, no batching.
 * @throws TypeError for an invalid URL
 */
export function createChain(options: ChainOptions): Chain {
  const rpc = createRpc(options.rpcUrl);
  const { timeoutMs } = options;
  const askWithin = askRightChain(rpc, options.chainId);
  const ask: Ask = (asked) => askWithin(asked, timeoutMs);
  const searches = createBoundedCache<string, SearchedBlocks>(maxSearches);
  const findWithin = (transaction: Hex, expected: ExpectedTransfer, limitMs: number) => {
    const endMs = performance.now() + limitMs;
    const askInTime: Ask = (asked) =>
      askWithin(asked, Math.min(timeoutMs, Math.max(endMs - performance.now(), 1)));
    return chainSchemes[expected.transferMethod].findSettlement(askInTime, transaction, expected);
  };

  return {
    rpcUrl: options.rpcUrl,
    async isUsed(expected, blockHash) {
      const at = blockHash === undefined ? 'latest' : ({ blockHash, requireCanonical: true } as const);
      const answer = await ask(chainSchemes[expected.transferMethod].isUsedCall(expected, at));
      return answer.kind === 'answer' ? { kind: 'answer', used: answer.value } : answer;
    },
    findSettlement: (transaction, expected) =>
      chainSchemes[expected.transferMethod].findSettlement(ask, transaction, expected),
    readTransfers: (transaction, assets) => readTransactionTransfers(ask, transaction, { assets }),
    readCost: (transaction) => readCost(ask, transaction),
    waitForSettlement: (transaction, expected, waitMs) =>
      poll((remainingMs) => findWithin(transaction, expected, remainingMs), {
        until: isConclusive,
        timeoutMs: waitMs,
        pauses,
      }),
    findAuthorization(expected, sinceSecs) {
      const { transferMethod, asset, from, nonce } = expected;
      const name = `${asset}/${from}/${nonce}`;
      return chainSchemes[transferMethod].findAuthorization(ask, expected, sinceSecs, {
        get: () => searches.get(name),
        set: (searched) => (searched ? searches.set(name, searched) : searches.delete(name)),
      });
    },
    finalizedBlock: () => askTaggedBlock(ask, 'finalized'),
    latestBlock: () => askTaggedBlock(ask, 'latest'),
    async blockHashAt(number) {
      const answer = await askBlock(ask, number);
      return answer.kind === 'answer' ? { kind: 'answer', hash: answer.value?.hash } : answer;
    },
    async knowsTransaction(transaction) {
      const answer = await ask(knownTransactionCall(transaction));
      return answer.kind === 'answer' ? { kind: 'answer', isKnown: answer.value } : answer;
    },
    readSignedBy: (transaction) => ask(signedByCall(transaction)),
    readSpentNonces: (sender, blockHash) => readSpentNonces(ask, sender, blockHash),
    findTransfers: (wanted, fromBlock, toBlock) =>
      findTransfers(ask, `eip155:${options.chainId}`, wanted, fromBlock, toBlock),
    async checkChainId() {
      const answer = await rpc.call(chainIdCall, timeoutMs);
      if (answer.kind === 'unavailable') return answer;
      return { kind: 'answer', matches: answer.value === BigInt(options.chainId) };
    },
    close: () => rpc.close(),
  };
}

/** Searches for authorizations that are to continue. */
const maxSearches = 10_000;
const pauses = { firstMs: 50, longestMs: 500, factor: 1.5 };

/** Another request could not change this answer. */
function isConclusive(answer: SettlementAnswer): boolean {
  return answer.kind === 'unavailable' ? answer.cause === 'closed' : answer.kind !== 'absent';
}

/**
 * How many nonces an account has used up to exactly this block: those of a Safe by its `nonce()`, of an account with a key those of its
 * transactions. Unavailable for any other contract, and if the node does not have that block as canonical.
 */
async function readSpentNonces(ask: Ask, sender: Address, blockHash: Hex): Promise<RpcAnswer<number>> {
  const at: BlockTag = { blockHash, requireCanonical: true };
  const code = await ask(codeCall(sender, at));
  if (code.kind === 'unavailable') return code;
  if (code.value !== '0x' && !code.value.startsWith(delegation))
    return ask(ethCall({ to: sender, data: nonceSelector }, nonceWord, at));
  return ask(shortCall('eth_getTransactionCount', [sender, at], safeQuantity));
}

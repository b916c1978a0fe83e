import { toEventSelector } from 'viem/utils';
import { z } from 'zod';
import type { Address, Hex } from '../../domain/values/primitives.ts';
import { type Ask, askBlock, askTaggedBlock, type BlockAnswer } from '../chain/blocks.ts';
import { smallAnswerBytes } from '../rpc/eth-call.ts';
import { findLog } from '../chain/find-log.ts';
import type { RpcAnswer, RpcCall, RpcUnavailable } from '../rpc/json-rpc.ts';
import { bytes32, noBlockHash, quantity, toQuantity } from '../rpc/rpc-values.ts';
import { logSchema, receiptCall } from '../chain/receipt.ts';

/** A transaction and its block, which was canonical at the time of the call. */
export interface Landed {
  readonly transaction: Hex;
  readonly block: { readonly number: bigint; readonly hash: Hex };
}

/** How a spend ended on its chain. */
export interface SpendEnd extends Landed {
  readonly how: 'claimed' | 'reclaimed';
}

/** `open`: its block can still be reorganized out. `reorged`: its block was. */
export type Finality = 'final' | 'open' | 'reorged';

const sharedMs = 500;

const claimed = toEventSelector('PaymentClaimed(bytes32,address,uint256)');
const reclaimed = toEventSelector('CreditsReclaimed(bytes32,bytes32,uint256)');

/** A spend's end by the contract's own log; undefined in the answer when the node has no such log since then. */
export async function findSpendEnd(
  ask: Ask,
  contract: Address,
  authHash: Hex,
  sinceSecs: number,
): Promise<RpcAnswer<SpendEnd | undefined>> {
  const found = await findLog(ask, (from, to) => logsCall(contract, authHash, from, to), sinceSecs);
  if (found.kind === 'unavailable' || !found.value) return found as RpcAnswer<undefined>;
  const { topics, transactionHash: transaction, blockNumber: number, blockHash: hash } = found.value;
  const how = topics[0] === claimed ? 'claimed' : 'reclaimed';
  return { kind: 'answer', value: { how, transaction, block: { number, hash } } };
}

/** The block of a successful transaction; undefined in the answer when no block includes it. */
export async function findLanded(ask: Ask, transaction: Hex): Promise<RpcAnswer<Landed | undefined>> {
  const receipt = await ask(receiptCall(transaction));
  if (receipt.kind === 'unavailable') return receipt;
  const { status, blockNumber: number = null, blockHash: hash = null } = receipt.value ?? {};
  const isIn = status === '0x1' && number !== null && hash !== null && hash !== noBlockHash;
  return { kind: 'answer', value: isIn ? { transaction, block: { number, hash } } : undefined };
}

/** Calls within half a second share one request, since many payouts wait for the same block. A final block stays final. */
export function shareFinalized(ask: Ask): () => Promise<BlockAnswer> {
  let answer: Promise<BlockAnswer> | undefined;
  let askedAtMs = 0;
  return async () => {
    if (!answer || performance.now() > askedAtMs + sharedMs) {
      answer = askTaggedBlock(ask, 'finalized');
      askedAtMs = performance.now();
    }
    const asked = answer;
    const found = await asked;
    if (found.kind === 'unavailable' && answer === asked) answer = undefined;
    return found;
  };
}

/** Compares hashes: another block may have the same number. */
export async function finalityOf(
  ask: Ask,
  askFinalized: () => Promise<BlockAnswer>,
  { block }: Landed,
): Promise<{ readonly kind: 'answer'; readonly value: Finality } | RpcUnavailable> {
  const finalized = await askFinalized();
  if (finalized.kind === 'unavailable') return finalized;
  if (finalized.block.number < block.number) return { kind: 'answer', value: 'open' };
  const at = await askBlock(ask, block.number);
  if (at.kind === 'unavailable') return at;
  if (at.value === null) return { kind: 'answer', value: 'open' };
  return { kind: 'answer', value: at.value.hash === block.hash ? 'final' : 'reorged' };
}

const placedLog = logSchema.extend({ blockNumber: quantity, blockHash: bytes32 });
type PlacedLog = z.infer<typeof placedLog>;

function logsCall(contract: Address, authHash: Hex, from: bigint, to: bigint): RpcCall<PlacedLog[]> {
  const events = [claimed, reclaimed];
  const isAsked = ({ address, topics, blockNumber, blockHash }: PlacedLog): boolean =>
    address === contract &&
    events.some((event) => event === topics[0]) &&
    topics[1] === authHash &&
    blockNumber >= from &&
    blockNumber <= to &&
    blockHash !== noBlockHash;
  const range = { fromBlock: toQuantity(from), toBlock: toQuantity(to) };
  return {
    method: 'eth_getLogs',
    params: [{ address: contract, topics: [events, authHash], ...range }],
    result: z.array(placedLog.refine(isAsked)),
    maxResponseBytes: smallAnswerBytes,
  };
}

import { toEventSelector } from 'viem';
import { z } from 'zod';
import type { Hex } from '../domain/primitives.ts';
import { type Ask, askTaggedBlock, findBlockBefore } from './blocks.ts';
import { addressWord, smallAnswerBytes } from './eth-call.ts';
import { unavailable, type RpcAnswer, type RpcCall, type RpcUnavailable } from './json-rpc.ts';
import { bytes32, noBlockHash, quantity, toQuantity } from './rpc-values.ts';
import {
  authorizationUsed,
  hasTransferBetween,
  type ExpectedTransfer,
  type LogPlace,
  logSchema,
  readSettlement,
  type Receipt,
  receiptCall,
} from './transfer-logs.ts';

/** Where a transaction stands in the chain. */
interface TransactionPlace {
  readonly transaction: Hex;
  readonly blockNumber: bigint;
  readonly blockHash: Hex;
}

export type AuthorizationFound =
  | ({ readonly kind: 'paid' } & LogPlace & TransactionPlace)
  /** Its payer withdrew it. */
  | ({ readonly kind: 'canceled' } & TransactionPlace)
  /** Used, but not for the expected transfer. */
  | ({ readonly kind: 'used_otherwise' } & TransactionPlace)
  /** The node has no such log where it looked; one that lags behind says so too. */
  | { readonly kind: 'absent' }
  | RpcUnavailable;

/** What became of an authorization since a time, asked by its logs; newest blocks first. */
export async function findAuthorization(
  ask: Ask,
  expected: ExpectedTransfer,
  sinceSecs: number,
): Promise<AuthorizationFound> {
  const latest = await askTaggedBlock(ask, 'latest');
  if (latest.kind === 'unavailable') return latest;
  const oldest = await findBlockBefore(ask, sinceSecs, latest.block);
  if (oldest.kind === 'unavailable') return oldest;
  const found = await findLog(ask, expected, oldest.value, latest.block.number);
  if (found.kind === 'unavailable') return found;
  return found.value === undefined ? { kind: 'absent' } : judge(ask, found.value, expected);
}

const widestRange = 2_000n;
/** Where a node refuses even this, narrower ranges would take too many questions. */
const narrowestRange = 50n;
/** Twelve days of a chain with a block every two seconds. */
const mostQuestions = 256;

async function findLog(
  ask: Ask,
  expected: ExpectedTransfer,
  oldest: bigint,
  latest: bigint,
): Promise<RpcAnswer<AuthorizationLog | undefined>> {
  let to = latest;
  let range = lesser(widestRange, latest - oldest + 1n);
  for (let question = 0; question < mostQuestions; question++) {
    const from = greater(to - range + 1n, oldest);
    const answer = await ask(logsCall(expected, from, to));
    if (answer.kind === 'answer') {
      const [log, another] = answer.value;
      // A nonce serves once: used or canceled.
      if (another !== undefined) return unavailable('inconsistent');
      if (log !== undefined || from === oldest) return { kind: 'answer', value: log };
      to = from - 1n;
    } else {
      if (!mayBeRange(answer) || range <= narrowestRange) return answer;
      range = greater(range / 2n, narrowestRange);
    }
  }
  return unavailable('range_too_long');
}

/** Nodes word a refused range each in its own way; some beside an HTTP status that others never use for it. */
function mayBeRange({ cause }: RpcUnavailable): boolean {
  return cause === 'rpc_error' || cause === 'status_400' || cause === 'status_413';
}

const authorizationCanceled = toEventSelector('AuthorizationCanceled(address,bytes32)');

const authorizationLogSchema = logSchema.extend({ blockNumber: quantity, blockHash: bytes32 });
type AuthorizationLog = z.infer<typeof authorizationLogSchema>;

function logsCall(expected: ExpectedTransfer, from: bigint, to: bigint): RpcCall<AuthorizationLog[]> {
  const events = [authorizationUsed, authorizationCanceled];
  const authorization = [addressWord(expected.from), expected.nonce];
  const isAsked = (log: AuthorizationLog): boolean => {
    const [event, ...indexed] = log.topics;
    const isOfIt = log.address === expected.asset && indexed.join() === authorization.join();
    const isWithin = log.blockNumber >= from && log.blockNumber <= to && log.blockHash !== noBlockHash;
    return isOfIt && isWithin && event !== undefined && events.includes(event);
  };
  const range = { fromBlock: toQuantity(from), toBlock: toQuantity(to) };
  return {
    method: 'eth_getLogs',
    params: [{ address: expected.asset, topics: [events, ...authorization], ...range }],
    result: z.array(authorizationLogSchema.refine(isAsked)),
    maxResponseBytes: smallAnswerBytes,
  };
}

/** Believes a log only as far as its transaction's receipt bears it out. */
async function judge(
  ask: Ask,
  log: AuthorizationLog,
  expected: ExpectedTransfer,
): Promise<AuthorizationFound> {
  const { transactionHash: transaction, blockNumber, blockHash } = log;
  const answer = await ask(receiptCall(transaction));
  if (answer.kind === 'unavailable') return answer;
  if (!answer.value || !isBorneOut(log, answer.value)) return unavailable('inconsistent');
  const place = { transaction, blockNumber, blockHash };
  if (log.topics[0] === authorizationCanceled) return { kind: 'canceled', ...place };
  const settlement = readSettlement(answer.value, expected);
  if (settlement.kind === 'paid') return { ...settlement, transaction };
  // money of this payer that reached the payee may be ours in a form nobody foresaw: that is for a person to say
  if (hasTransferBetween(answer.value, expected)) return unavailable('ambiguous_transfer');
  return { kind: 'used_otherwise', ...place };
}

function isBorneOut(log: AuthorizationLog, { status, blockNumber, blockHash, logs }: Receipt): boolean {
  const isOfBlock = blockNumber === log.blockNumber && blockHash === log.blockHash;
  const own = logs.find(({ logIndex }) => logIndex === log.logIndex);
  const isSame = own?.address === log.address && own.topics.join() === log.topics.join();
  return status === '0x1' && isOfBlock && isSame;
}

function lesser(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

function greater(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}

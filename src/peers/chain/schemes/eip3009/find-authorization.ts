import { toEventSelector } from 'viem/utils';
import { z } from 'zod';
import type { ExpectedTransfer } from '../../../../domain/payments/payment.ts';
import { addressWord, smallAnswerBytes } from '../../../rpc/eth-call.ts';
import { type RpcCall, unavailable } from '../../../rpc/json-rpc.ts';
import { bytes32, noBlockHash, quantity, toQuantity } from '../../../rpc/rpc-values.ts';
import type { Ask } from '../../blocks.ts';
import { findLog } from '../../find-log.ts';
import { logSchema, type Receipt, receiptCall } from '../../receipt.ts';
import type { AuthorizationFound } from '../scheme.ts';
import { authorizationUsed, hasTransferBetween, readSettlement } from './authorization-logs.ts';

export async function findAuthorization(
  ask: Ask,
  expected: ExpectedTransfer,
  sinceSecs: number,
): Promise<AuthorizationFound> {
  const found = await findLog(ask, (from, to) => logsCall(expected, from, to), sinceSecs);
  if (found.kind === 'unavailable') return found;
  return found.value === undefined ? { kind: 'absent' } : judge(ask, found.value, expected);
}

const authorizationCanceled = toEventSelector('AuthorizationCanceled(address,bytes32)');

const authorizationLogSchema = logSchema.extend({ blockNumber: quantity, blockHash: bytes32 });
type AuthorizationLog = z.infer<typeof authorizationLogSchema>;

function logsCall(expected: ExpectedTransfer, from: bigint, to: bigint): RpcCall<AuthorizationLog[]> {
  const events = [authorizationUsed, authorizationCanceled];
  const authorization = [addressWord(expected.from), expected.nonce];
  const isRequested = (log: AuthorizationLog): boolean => {
    const [event, ...indexed] = log.topics;
    const isOfIt = log.address === expected.asset && indexed.join() === authorization.join();
    const isWithin = log.blockNumber >= from && log.blockNumber <= to && log.blockHash !== noBlockHash;
    return isOfIt && isWithin && event !== undefined && events.includes(event);
  };
  const range = { fromBlock: toQuantity(from), toBlock: toQuantity(to) };
  return {
    method: 'eth_getLogs',
    params: [{ address: expected.asset, topics: [events, ...authorization], ...range }],
    result: z.array(authorizationLogSchema.refine(isRequested)),
    maxResponseBytes: smallAnswerBytes,
  };
}

/** Accepts a log only where its transaction's receipt confirms it. */
async function judge(
  ask: Ask,
  log: AuthorizationLog,
  expected: ExpectedTransfer,
): Promise<AuthorizationFound> {
  const { transactionHash: transaction, blockNumber, blockHash } = log;
  const answer = await ask(receiptCall(transaction));
  if (answer.kind === 'unavailable') return answer;
  if (!answer.value || !isConfirmed(log, answer.value)) return unavailable('inconsistent');
  const place = { transaction, blockNumber, blockHash };
  if (log.topics[0] === authorizationCanceled) return { kind: 'canceled', ...place };
  const settlement = readSettlement(answer.value, expected);
  if (settlement.kind === 'paid') return { ...settlement, transaction };
  // this payer's money reached the payee, perhaps for this payment in an unforeseen form: an operator has to decide
  if (hasTransferBetween(answer.value, expected)) return unavailable('ambiguous_transfer');
  return { kind: 'used_otherwise', ...place };
}

function isConfirmed(log: AuthorizationLog, { status, blockNumber, blockHash, logs }: Receipt): boolean {
  const isOfBlock = blockNumber === log.blockNumber && blockHash === log.blockHash;
  const own = logs.find(({ logIndex }) => logIndex === log.logIndex);
  const isSame = own?.address === log.address && own.topics.join() === log.topics.join();
  return status === '0x1' && isOfBlock && isSame;
}

import { toFunctionSelector, toEventSelector } from 'viem/utils';
import { z } from 'zod';
import { abiFalse, abiTrue, addressWord, ethCall } from '../../../../../base/peers/rpc/eth-call.ts';
import type { ChainScheme, AuthorizationFound, SettlementAnswer } from '../scheme.ts';
import { authorizationUsed, usedAuthorizations, readUse, type Use } from './authorization-logs.ts';
import type { ExpectedTransfer } from '../../../../rules/payment.ts';
import type { Hex } from '../../../../../base/values/primitives.ts';
import { type RpcAnswer, unavailable } from '../../../../../base/peers/rpc/json-rpc.ts';
import type { Ask } from '../../blocks.ts';
import { findLog, type SearchMemory } from '../../find-log.ts';
import { findTransaction } from '../../transactions.ts';
import { type Log, type LogFilter, singleLogCall, readTransactionLogs } from '../../logs.ts';
import { transferred } from '../../transfers.ts';

const stateSelector = toFunctionSelector('authorizationState(address,bytes32)');
const stateResult = z.enum([abiFalse, abiTrue]).transform((text) => text === abiTrue);

/** The on-chain half of EIP-3009: the token's `authorizationState`, its AuthorizationUsed and AuthorizationCanceled. */
export const eip3009: ChainScheme = {
  isUsedCall({ asset, from, nonce }, at) {
    const data = `${stateSelector}${addressWord(from).slice(2)}${nonce.slice(2)}` as const;
    return ethCall({ to: asset, data }, stateResult, at);
  },
  usedEvents: [authorizationUsed],
  findSettlement,
  findAuthorization,
  usedAuthorizations,
};

const authorizationCanceled = toEventSelector('AuthorizationCanceled(address,bytes32)');

/** Looks for the use of an authorization in one transaction, which somebody has named. */
async function findSettlement(
  ask: Ask,
  transaction: Hex,
  expected: ExpectedTransfer,
): Promise<SettlementAnswer> {
  const found = await findTransaction(ask, transaction);
  if (found.kind === 'unavailable') return found;
  if (found.kind !== 'mined') return { kind: 'absent' };
  const read = await readUseIn(ask, transaction, found.place.blockHash, expected);
  if (read.kind === 'unavailable') return read;
  const { value: use } = read;
  return use.kind === 'paid'
    ? { ...found.place, ...use }
    : { kind: 'contradicted', why: use.kind, ...found.place };
}

/**
 * What the logs of a transaction, read by the hash of its block, show of a payment. That it was not paid can end it for good, and rests on a
 * log that is not there: so it takes two readings, of which a node that answers for several may leave the log out of one.
 * @param end a log that the node has shown, and that must be among them
 */
async function readUseIn(
  ask: Ask,
  transaction: Hex,
  blockHash: Hex,
  expected: ExpectedTransfer,
  end?: Log,
): Promise<RpcAnswer<Use>> {
  for (let isSecond = false; ; isSecond = true) {
    const logs = await readTransactionLogs(ask, transaction, ofPayer(expected), blockHash);
    if (logs.kind === 'unavailable') return logs;
    // a node that leaves out a log that it has shown may leave out the transfer as well
    if (end && !logs.value.some((log) => isSame(log, end))) return unavailable('inconsistent');
    const use = readUse(logs.value, expected);
    if (use.kind === 'paid' || isSecond) return { kind: 'answer', value: use };
  }
}

/** Finds the only log of an authorization's end, and judges it by the logs of the very block that has it. */
async function findAuthorization(
  ask: Ask,
  expected: ExpectedTransfer,
  sinceSecs: number,
  memory: SearchMemory,
): Promise<AuthorizationFound> {
  const filter = ofAuthorization(expected);
  const found = await findLog(ask, (from, to) => singleLogCall(filter, { from, to }), sinceSecs, memory);
  if (found.kind === 'unavailable') return found;
  return found.value === undefined ? { kind: 'absent' } : judge(ask, found.value, expected);
}

async function judge(ask: Ask, end: Log, expected: ExpectedTransfer): Promise<AuthorizationFound> {
  const { transactionHash: transaction, blockNumber, blockHash } = end;
  const read = await readUseIn(ask, transaction, blockHash, expected, end);
  if (read.kind === 'unavailable') return read;
  const place = { transaction, blockNumber, blockHash };
  if (end.topics[0] === authorizationCanceled) return { kind: 'canceled', ...place };
  const { value: use } = read;
  return use.kind === 'paid' ? { ...place, ...use } : { kind: 'used_otherwise', ...place };
}

function isSame(one: Log, other: Log): boolean {
  return (
    one.logIndex === other.logIndex &&
    one.blockNumber === other.blockNumber &&
    one.topics.join() === other.topics.join()
  );
}

function ofAuthorization({ asset, from, nonce }: ExpectedTransfer): LogFilter {
  const events = [authorizationUsed, authorizationCanceled];
  return { addresses: [asset], topics: [events, [addressWord(from)], [nonce]] };
}

/** What a payer's authorizations and transfers of a token log. */
function ofPayer({ asset, from }: ExpectedTransfer): LogFilter {
  const events = [authorizationUsed, authorizationCanceled, transferred];
  return { addresses: [asset], topics: [events, [addressWord(from)]] };
}

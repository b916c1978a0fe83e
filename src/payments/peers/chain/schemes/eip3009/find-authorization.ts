import { toEventSelector } from 'viem/utils';
import type { ExpectedTransfer } from '../../../../rules/payment.ts';
import type { Hex } from '../../../../../base/values/primitives.ts';
import { addressWord } from '../../../../../base/peers/rpc/eth-call.ts';
import { unavailable } from '../../../../../base/peers/rpc/json-rpc.ts';
import type { Ask } from '../../blocks.ts';
import { findLog } from '../../find-log.ts';
import { findTransaction } from '../../known-transaction.ts';
import { type Log, type LogFilter, singleLogCall } from '../../logs.ts';
import { readTransactionLogs } from '../../transaction-logs.ts';
import { transferred } from '../../transfers.ts';
import type { AuthorizationFound, SettlementAnswer } from '../scheme.ts';
import { authorizationUsed, readUse } from './authorization-logs.ts';

const authorizationCanceled = toEventSelector('AuthorizationCanceled(address,bytes32)');

/** Looks for the use of an authorization in one transaction, which somebody has named. */
export async function findSettlement(
  ask: Ask,
  transaction: Hex,
  expected: ExpectedTransfer,
): Promise<SettlementAnswer> {
  const found = await findTransaction(ask, transaction);
  if (found.kind === 'unavailable') return found;
  if (found.kind !== 'mined') return { kind: 'absent' };
  const logs = await readTransactionLogs(ask, transaction, ofPayer(expected), found.place.blockHash);
  if (logs.kind === 'unavailable') return logs;
  const use = readUse(logs.value, expected);
  return use.kind === 'paid'
    ? { ...found.place, ...use }
    : { kind: 'contradicted', why: use.kind, ...found.place };
}

/** Finds the only log of an authorization's end, and judges it by the logs of the very block that has it. */
export async function findAuthorization(
  ask: Ask,
  expected: ExpectedTransfer,
  sinceSecs: number,
): Promise<AuthorizationFound> {
  const filter = ofAuthorization(expected);
  const found = await findLog(ask, (from, to) => singleLogCall(filter, { from, to }), sinceSecs);
  if (found.kind === 'unavailable') return found;
  return found.value === undefined ? { kind: 'absent' } : judge(ask, found.value, expected);
}

async function judge(ask: Ask, end: Log, expected: ExpectedTransfer): Promise<AuthorizationFound> {
  const { transactionHash: transaction, blockNumber, blockHash } = end;
  const logs = await readTransactionLogs(ask, transaction, ofPayer(expected), blockHash);
  if (logs.kind === 'unavailable') return logs;
  // a node that leaves out a log that it has shown may leave out the transfer as well
  if (!logs.value.some((log) => isSame(log, end))) return unavailable('inconsistent');
  const place = { transaction, blockNumber, blockHash };
  if (end.topics[0] === authorizationCanceled) return { kind: 'canceled', ...place };
  const use = readUse(logs.value, expected);
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

import { toEventSelector } from 'viem/utils';
import { type ExpectedTransfer, isSignedAmount } from '../../../../rules/payment.ts';
import type { Address, Hex } from '../../../../../base/values/primitives.ts';
import { addressWord, isWithoutState } from '../../../../../base/peers/rpc/eth-call.ts';
import { type RpcAnswer, type RpcUnavailable, unavailable } from '../../../../../base/peers/rpc/json-rpc.ts';
import {
  exactProxyAddress,
  nonceBit,
  permit2Address,
  uptoProxyAddress,
} from '../../../../rules/schemes/permit2/signature-transfer.ts';
import type { Ask } from '../../blocks.ts';
import { type SearchMemory, searchLogs } from '../../find-log.ts';
import { type Log, type LogFilter, logsCall, readTransactionLogs } from '../../logs.ts';
import { type BlockPlace, findTransaction, readInput } from '../../transactions.ts';
import { isTransfer, type Transfer, transferOf, transferred } from '../../transfers.ts';
import type {
  AuthorizationFound,
  ChainScheme,
  MovedTransfer,
  SettlementAnswer,
  UsedAuthorization,
} from '../scheme.ts';
import { type Move, type Permit, permitsFor, permitUse } from './permits.ts';
import { atHash, findUseBlock, isNonceUsedCall } from './use-block.ts';

/**
 * The on-chain half of the schemes over Permit2: the bitmap of nonces, the token's transfers, and the calldata that says which of them
 * belongs to which nonce. Why so: docs/decisions/0033-evidence-of-permit2.md.
 */
function createPermit2Chain(isUpto: boolean): ChainScheme {
  return {
    isUsedCall: (expected, at) => isNonceUsedCall(expected, at),
    usedEvents: [],
    findSettlement,
    findAuthorization,
    usedAuthorizations: (logs, input) => usedAuthorizations(logs, input, isUpto),
  };
}

export const permit2 = createPermit2Chain(false);
export const upto = createPermit2Chain(true);

const invalidated = toEventSelector('UnorderedNonceInvalidation(address,uint256,uint256)');
/** What x402's contract logs after each transfer. It moves nothing while another call of it is under way. */
const settledEvents = [toEventSelector('Settled()'), toEventSelector('SettledWithPermit()')];

/** What a transaction's logs and calldata show of a payment. */
type Bound =
  | ({ readonly kind: 'paid' } & MovedTransfer)
  | { readonly kind: 'no_transfer' | 'no_authorization_used' }
  | { readonly kind: 'ambiguous'; readonly transfers: readonly MovedTransfer[] };

/** Looks for a payment in one transaction, which somebody has named. */
async function findSettlement(
  ask: Ask,
  transaction: Hex,
  expected: ExpectedTransfer,
): Promise<SettlementAnswer> {
  const found = await findTransaction(ask, transaction);
  if (found.kind === 'unavailable') return found;
  if (found.kind !== 'mined') return { kind: 'absent' };
  const { place } = found;
  const logs = await readTransactionLogs(ask, transaction, transfersOf(expected), place.blockHash);
  if (logs.kind === 'unavailable') return logs;
  const bound = await bind(ask, transaction, logs.value, expected);
  switch (bound.kind) {
    case 'unavailable':
      return bound;
    case 'no_transfer':
    case 'no_authorization_used':
      return { kind: 'contradicted', why: bound.kind, ...place };
    case 'paid':
    case 'ambiguous': {
      // anybody may write a permit into calldata: it is this one that was used only if its nonce is
      const used = await isUsedAt(ask, expected, place);
      if (used.kind === 'unavailable') return used;
      return used.value
        ? { ...bound, ...place }
        : { kind: 'contradicted', why: 'no_authorization_used', ...place };
    }
  }
}

/** Whether the nonce is used at a block, or by now if the node no longer has that block's state. */
async function isUsedAt(
  ask: Ask,
  expected: ExpectedTransfer,
  { blockHash }: BlockPlace,
): Promise<RpcAnswer<boolean>> {
  const answer = await ask(isNonceUsedCall(expected, atHash(blockHash)));
  const isPruned = answer.kind === 'unavailable' && isWithoutState(answer);
  return isPruned ? ask(isNonceUsedCall(expected, 'latest')) : answer;
}

/** @param logs transfers of one transaction; others than the expected ones are ignored */
async function bind(
  ask: Ask,
  transaction: Hex,
  logs: readonly Log[],
  expected: ExpectedTransfer,
): Promise<Bound | RpcUnavailable> {
  const byValue = Map.groupBy(
    logs.flatMap((log) => expectedIn(log, expected) ?? []),
    ({ value }) => value,
  );
  if (byValue.size === 0) return { kind: 'no_transfer' };
  const input = await readInput(ask, transaction);
  if (input.kind === 'unavailable') return input;
  // the node has just shown its logs
  if (input.value === undefined) return unavailable('inconsistent');
  const uses = [...byValue].map(([value, transfers]) => {
    const permits = permitsFor(input.value ?? '0x', { ...moveOf(expected), value });
    return { transfers, use: permitUse(permits, permitOf(expected), transfers) };
  });
  const moved = uses.flatMap(({ use }) => (use.kind === 'moved' ? [use.transfer] : []));
  const [only, another] = moved;
  if (only && !another) return { kind: 'paid', ...movedBy(only, expected) };
  const unclear = uses.flatMap(({ transfers, use }) => (use.kind === 'others' ? [] : transfers));
  return unclear.length > 0
    ? { kind: 'ambiguous', transfers: unclear.map((transfer) => movedBy(transfer, expected)) }
    : { kind: 'no_authorization_used' };
}

/**
 * Finds the block that used the nonce by the states before and after, and judges its logs. That the payment was not made rests on logs that
 * are not there, so it takes two readings. A node without those states can only show that it was made.
 */
async function findAuthorization(
  ask: Ask,
  expected: ExpectedTransfer,
  sinceSecs: number,
  memory: SearchMemory,
): Promise<AuthorizationFound> {
  const use = await findUseBlock(ask, expected);
  if (use.kind === 'unavailable') return use;
  switch (use.value.kind) {
    case 'unused':
      return { kind: 'absent' };
    case 'pruned':
      return searchTransfers(ask, expected, sinceSecs, memory);
    case 'found': {
      const first = await judgeBlock(ask, use.value, expected);
      if (first.kind === 'unavailable' || first.kind === 'paid' || first.kind === 'ambiguous') return first;
      return judgeBlock(ask, use.value, expected);
    }
  }
}

/** What the block that used a nonce shows of it. */
async function judgeBlock(
  ask: Ask,
  { blockNumber, blockHash }: BlockPlace,
  expected: ExpectedTransfer,
): Promise<AuthorizationFound> {
  const place = { blockNumber, blockHash };
  const logs = await ask(logsCall(movesOf(expected), { blockHash, number: blockNumber }, (log) => log));
  if (logs.kind === 'unavailable') return logs;
  const unclear: { readonly transaction: Hex; readonly log: Log | undefined }[] = [];
  let hasOthers = false;
  for (const [transaction, own] of byTransaction(logs.value)) {
    const bound = await bind(ask, transaction, own, expected);
    if (bound.kind === 'unavailable') return bound;
    if (bound.kind === 'paid') return { ...bound, transaction, ...place };
    if (bound.kind === 'no_authorization_used') hasOthers = true;
    if (bound.kind === 'ambiguous')
      for (const { logIndex } of bound.transfers)
        unclear.push({
          transaction,
          log: settledTransfers(own, expected).find((log) => log.logIndex === logIndex),
        });
  }
  const [only, ...more] = unclear;
  // the nonce was used in this block, and only one transfer can be its own
  const transfer = only?.log && expectedIn(only.log, expected);
  if (transfer && more.length === 0 && !hasOthers)
    return { kind: 'paid', ...movedBy(transfer, expected), transaction: only.transaction, ...place };
  // calldata can name a permit that it does not use: a transfer that seems to be another's is no proof
  if (only || hasOthers) return { kind: 'ambiguous' };
  const canceled = await findInvalidation(ask, place, expected);
  if (canceled.kind === 'unavailable') return canceled;
  return canceled.value === undefined
    ? { kind: 'used_otherwise', ...place }
    : { kind: 'canceled', transaction: canceled.value, ...place };
}

/** The transaction of a block in which the payer withdrew the nonce. */
async function findInvalidation(
  ask: Ask,
  { blockNumber: number, blockHash }: BlockPlace,
  { from, nonce }: ExpectedTransfer,
): Promise<RpcAnswer<Hex | undefined>> {
  const { word, mask } = nonceBit(nonce);
  const filter = { addresses: [permit2Address], topics: [[invalidated], [addressWord(from)]] };
  const isOwn = ({ data }: Log): boolean =>
    data.length === 130 &&
    BigInt(data.slice(0, 66)) === word &&
    (BigInt(`0x${data.slice(66)}`) & mask) !== 0n;
  const answer = await ask(
    logsCall(filter, { blockHash, number }, (log) => (isOwn(log) ? log.transactionHash : undefined)),
  );
  return answer.kind === 'unavailable' ? answer : { kind: 'answer', value: answer.value[0] };
}

/** Of one look, where each transfer takes a request for its calldata. */
const maxTransfers = 256;

/** Looks through the payer's transfers to the payee, newest first, for the one whose calldata has the permit. */
async function searchTransfers(
  ask: Ask,
  expected: ExpectedTransfer,
  sinceSecs: number,
  memory: SearchMemory,
): Promise<AuthorizationFound> {
  const filter = transfersOf(expected);
  let isUnclear = false;
  let looked = 0;
  const found = await searchLogs(ask, {
    call: (from, to) =>
      logsCall(filter, { from, to }, (log) => (expectedIn(log, expected) ? log : undefined)),
    sinceSecs,
    memory,
    async pick(logs): Promise<RpcAnswer<AuthorizationFound | undefined>> {
      for (const [transaction, own] of byTransaction(logs.toReversed())) {
        if (++looked > maxTransfers) return unavailable('range_too_long');
        const bound = await bind(ask, transaction, own, expected);
        if (bound.kind === 'unavailable') return bound;
        if (bound.kind === 'ambiguous') isUnclear = true;
        if (bound.kind === 'paid')
          return {
            kind: 'answer',
            value: { ...bound, transaction, blockNumber: own[0].blockNumber, blockHash: own[0].blockHash },
          };
      }
      return { kind: 'answer', value: undefined };
    },
  });
  if (found.kind === 'unavailable') return found;
  return found.value ?? { kind: isUnclear ? 'ambiguous' : 'absent' };
}

/** Every transfer for which the calldata has a permit of this scheme, if it has as many of all schemes as there are transfers. */
function usedAuthorizations(logs: readonly Log[], input: Hex, isUpto: boolean): UsedAuthorization[] {
  const moves = Map.groupBy(
    logs.flatMap((log) => transferOf(log) ?? []),
    ({ asset, from, to, value }) => `${asset}/${from}/${to}/${value}`,
  );
  return [...moves.values()].flatMap((transfers) => {
    const [move] = transfers;
    const permits = move ? permitsFor(input, move) : [];
    return permits.flatMap((permit) => {
      const use = permitUse(permits, permit, transfers);
      if (use.kind !== 'moved' || (permit.most !== undefined) !== isUpto) return [];
      const { nonce } = permit;
      const { asset, from: payer, logIndex } = use.transfer;
      return [{ asset, payer, nonce, logIndex }];
    });
  });
}

/** The logs of transactions in their order, those of each in theirs. */
function byTransaction(logs: readonly Log[]): [transaction: Hex, own: [Log, ...Log[]]][] {
  const grouped = Map.groupBy(logs, ({ transactionHash }) => transactionHash);
  return [...grouped].map(([transaction, own]) => [
    transaction,
    // a group has at least one
    own.toSorted((a, b) => a.logIndex - b.logIndex) as [Log, ...Log[]],
  ]);
}

/** The transfers that x402's contract made: each is the last one before the contract's own log. */
function settledTransfers(logs: readonly Log[], expected: ExpectedTransfer): Log[] {
  return logs.flatMap((log, at) => {
    const before = logs[at - 1];
    return log.address === proxyOf(expected) && before && isTransfer(before) ? [before] : [];
  });
}

/** The payer's transfers of the token to the payee. */
function transfersOf({ asset, from, payTo }: ExpectedTransfer): LogFilter {
  return { addresses: [asset], topics: [[transferred], [addressWord(from)], [addressWord(payTo)]] };
}

/** All transfers of the token, and the settlements of x402's contract. */
function movesOf(expected: ExpectedTransfer): LogFilter {
  return { addresses: [expected.asset, proxyOf(expected)], topics: [[transferred, ...settledEvents]] };
}

function proxyOf({ transferMethod }: ExpectedTransfer): Address {
  return transferMethod === 'upto' ? uptoProxyAddress : exactProxyAddress;
}

function permitOf({ transferMethod, nonce, value }: ExpectedTransfer): Permit {
  return { nonce, most: transferMethod === 'upto' ? value : undefined };
}

function moveOf({ asset, from, payTo: to }: ExpectedTransfer): Omit<Move, 'value'> {
  return { asset, from, to };
}

/** The transfer of a log, if it can be the expected one: of all that was signed, or of any part of it by `upto`. */
function expectedIn(
  log: Log,
  { asset, from, payTo, value, transferMethod }: ExpectedTransfer,
): Transfer | undefined {
  const transfer = transferOf(log);
  if (transfer?.asset !== asset || transfer.from !== from || transfer.to !== payTo) return undefined;
  const signed = { signedAmount: value, isAtMost: transferMethod === 'upto' };
  return isSignedAmount(signed, transfer.value) ? transfer : undefined;
}

function movedBy(
  { value, logIndex, blockTimeSecs }: Transfer,
  { transferMethod }: ExpectedTransfer,
): MovedTransfer {
  const place = { logIndex, ...(blockTimeSecs === undefined ? {} : { blockTimeSecs }) };
  return transferMethod === 'upto' ? { ...place, value } : place;
}

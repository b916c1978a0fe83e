import { keccak256 } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import type { Address, Hex } from '../../domain/values/primitives.ts';
import { isExecutionFailure, smallAnswerBytes } from '../rpc/eth-call.ts';
import { type Rpc, type RpcAnswer, type RpcCall, RpcError, type RpcUnavailable } from '../rpc/json-rpc.ts';
import { bytes32, quantity } from '../rpc/rpc-values.ts';
import type { Ask } from './blocks.ts';
import { knownTransactionCall } from './known-transaction.ts';
import { blockOf, receiptCall } from './receipt.ts';
import { isKnown, isReplacement, isTaken, mayHaveArrived } from './send-errors.ts';
import { type Fees, raisedFees, readFees } from './transaction-fees.ts';
import { backOffMs } from '../../domain/values/back-off.ts';
import { pause } from '../../runtime/pause.ts';

/** What became of a transaction. */
export type SendAnswer =
  | { readonly kind: 'landed'; readonly transaction: Hex; readonly block: { number: bigint; hash: Hex } }
  /** The contract reverted: in the gas estimate, or in a block, where `transaction` names it. */
  | { readonly kind: 'reverted'; readonly data: string | undefined; readonly transaction?: Hex }
  /** The node refused it, and no other node has it. */
  | { readonly kind: 'not_sent'; readonly cause: string; readonly error?: Error }
  /** It may land at any time, or never. */
  | { readonly kind: 'unknown'; readonly transaction: Hex }
  /** The node could not be reached; nothing was sent. */
  | RpcUnavailable;

export interface TransactionSender {
  readonly address: Address;
  /**
   * Sends a call under the key's next nonce and waits up to `waitMs` until a block includes it. A call that would revert is
   * not sent. A call whose nonce another transaction took is sent again, so only for calls that may safely run twice.
   */
  send(call: { readonly to: Address; readonly data: Hex }, waitMs: number): Promise<SendAnswer>;
  /** The key's balance, and what so much gas costs today at the highest fee that would be offered. */
  funds(gas: bigint): Promise<RpcAnswer<Funds>>;
}

export interface Funds {
  readonly balanceWei: bigint;
  readonly costWei: bigint;
}

export interface TransactionSenderOptions {
  readonly rpc: Rpc;
  readonly chainId: number;
  readonly privateKey: Hex;
  /** Of one request. */
  readonly timeoutMs: number;
}

/** A transaction of one nonce. Sent again for a higher fee it has another hash, and either may land. */
interface Sent {
  readonly nonce: number;
  readonly call: { readonly to: Address; readonly data: Hex; readonly gas: bigint };
  fees: Fees;
  raw: Hex;
  /** The latest last. */
  hashes: readonly [...Hex[], Hex];
}

/** Another process with the same key may take a nonce at the same moment. */
const maxTries = 8;
const pauses = { firstMs: 20, longestMs: 1_000, factor: 1.5 };
/** How often the fee of a transaction that does not land is compared with today's. */
const raiseEveryMs = 3_000;

/**
 * A key on one chain. Each nonce comes from the node, so that a restart neither repeats nor skips one; a transaction that
 * this process has sent and the node does not count yet is sent again first, under its old nonce. A transaction whose fee is
 * too low delays all later ones, so a caller that waits raises its fee.
 */
export function createTransactionSender(options: TransactionSenderOptions): TransactionSender {
  const { rpc, chainId, timeoutMs } = options;
  const account = privateKeyToAccount(options.privateKey);
  const address = account.address.toLowerCase() as Address;
  const ask = <T>(call: RpcCall<T>): Promise<RpcAnswer<T>> => rpc.call(call, timeoutMs);
  const open = new Map<number, Sent>();
  /** Every transaction that is not known to have landed. */
  const underWay = new Map<number, Sent>();
  let raisedAtMs = performance.now();
  let lastTurn: Promise<unknown> = Promise.resolve();

  const nextNonce = async (floor: number): Promise<RpcAnswer<number>> => {
    const pending = await ask(countCall(address, 'pending'));
    if (pending.kind === 'unavailable') return pending;
    for (const nonce of open.keys()) if (nonce < pending.value) open.delete(nonce);
    let nonce = pending.value;
    for (let lost = open.get(nonce); lost !== undefined; lost = open.get(nonce)) {
      const answer = await ask(sendCall(lost.raw));
      if (answer.kind === 'unavailable' && !isKnown(answer) && !isTaken(answer)) break;
      nonce++;
    }
    return { kind: 'answer', value: Math.max(nonce, floor) };
  };

  /** Signs and sends under the first free nonce. Runs one at a time, from reading the nonce to sending. */
  const submit = async (to: Address, data: Hex, gas: bigint, fees: Fees): Promise<Sent | SendAnswer> => {
    let floor = 0;
    for (let tries = 1; ; tries++) {
      const next = await nextNonce(floor);
      if (next.kind === 'unavailable') return next;
      const nonce = next.value;
      const call = { to, data, gas };
      const raw = await account.signTransaction({ chainId, ...call, nonce, ...fees });
      const answer = await ask(sendCall(raw));
      const sent: Sent = { nonce, call, fees, raw, hashes: [keccak256(raw)] };
      if (answer.kind === 'answer' || mayHaveArrived(answer)) {
        open.set(nonce, sent);
        underWay.set(nonce, sent);
        return sent;
      }
      if (!isTaken(answer) || tries === maxTries)
        return { kind: 'not_sent', cause: answer.cause, ...(answer.error && { error: answer.error }) };
      floor = isReplacement(answer) ? nonce + 1 : 0;
    }
  };

  /** @param next the nonce that lands next */
  const raise = async (next: number): Promise<void> => {
    for (const nonce of underWay.keys()) if (nonce < next) underWay.delete(nonce);
    const first = underWay.get(next);
    if (!first || performance.now() < raisedAtMs + raiseEveryMs) return;
    raisedAtMs = performance.now();
    const fees = await readFees(ask);
    const raised = fees.kind === 'answer' ? raisedFees(first.fees, fees.value) : undefined;
    if (!raised) return;
    const raw = await account.signTransaction({ chainId, ...first.call, nonce: next, ...raised });
    const answer = await ask(sendCall(raw));
    if (answer.kind !== 'answer' && !mayHaveArrived(answer)) return;
    Object.assign(first, { raw, fees: raised, hashes: [...first.hashes, keccak256(raw)] });
  };

  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = lastTurn.then(work);
    lastTurn = turn.catch(() => undefined);
    return turn;
  };

  return {
    address,
    async funds(gas) {
      const balance = await ask(balanceCall(address));
      if (balance.kind === 'unavailable') return balance;
      const fees = await readFees(ask);
      if (fees.kind === 'unavailable') return fees;
      const price = fees.value.type === 'legacy' ? fees.value.gasPrice : fees.value.maxFeePerGas;
      return { kind: 'answer', value: { balanceWei: balance.value, costWei: gas * price } };
    },
    async send({ to, data }, waitMs) {
      const endMs = performance.now() + waitMs;
      for (let tries = 1; ; tries++) {
        const gas = await ask(estimateCall(address, to, data));
        if (gas.kind === 'unavailable') return estimateFailure(gas);
        const fees = await readFees(ask);
        if (fees.kind === 'unavailable') return fees;
        const sent = await inTurn(() => submit(to, data, (gas.value * 3n) / 2n, fees.value));
        if ('kind' in sent) return sent;
        const outcome = await awaitReceipt(ask, address, sent, endMs, raise);
        if (outcome.kind !== 'unknown' && outcome.kind !== 'replaced') open.delete(sent.nonce);
        if (outcome.kind !== 'replaced') return outcome;
        open.delete(sent.nonce);
        underWay.delete(sent.nonce);
        if (tries === maxTries) return { kind: 'unknown', transaction: latestOf(sent) };
      }
    },
  };
}

function estimateFailure(answer: RpcUnavailable): SendAnswer {
  const { cause, error } = answer;
  if (!(error instanceof RpcError)) return answer;
  return isExecutionFailure(error)
    ? { kind: 'reverted', data: error.data }
    : { kind: 'not_sent', cause, error };
}

/** `replaced`: another transaction of the same key has its nonce, so it never lands. */
async function awaitReceipt(
  ask: Ask,
  address: Address,
  sent: Sent,
  endMs: number,
  raise: (next: number) => Promise<void>,
): Promise<SendAnswer | { readonly kind: 'replaced' }> {
  for (let attempt = 0; ; attempt += 1) {
    // before the receipt: a transaction that lands between the two requests is not taken for replaced
    const mined = await ask(countCall(address, 'latest'));
    let isWithoutReceipt = true;
    for (const hash of sent.hashes) {
      const receipt = await ask(receiptCall(hash));
      const found = receipt.kind === 'answer' ? receipt.value : null;
      const place = blockOf(found);
      if (place) {
        if (found?.status === '0x0') return { kind: 'reverted', data: undefined, transaction: hash };
        const block = { number: place.blockNumber, hash: place.blockHash };
        return { kind: 'landed', transaction: hash, block };
      }
      isWithoutReceipt &&= receipt.kind === 'answer';
    }
    const isGone = isWithoutReceipt && mined.kind === 'answer' && mined.value > sent.nonce;
    if (isGone && (await areUnknown(ask, sent.hashes))) return { kind: 'replaced' };
    // closed connections give no further answer
    const isClosed = mined.kind === 'unavailable' && mined.cause === 'closed';
    const pauseMs = backOffMs(pauses, attempt);
    if (isClosed || performance.now() + pauseMs >= endMs)
      return { kind: 'unknown', transaction: latestOf(sent) };
    await pause(pauseMs);
    if (mined.kind === 'answer') await raise(mined.value);
  }
}

function latestOf({ hashes }: Sent): Hex {
  return hashes.at(-1) ?? hashes[0];
}

/** No node behind the RPC knows any of them: one that lags may know a transaction, but not its receipt yet. */
async function areUnknown(ask: Ask, hashes: readonly Hex[]): Promise<boolean> {
  for (const hash of hashes) {
    const answer = await ask(knownTransactionCall(hash));
    if (answer.kind !== 'answer' || answer.value) return false;
  }
  return true;
}

function balanceCall(address: Address): RpcCall<bigint> {
  return {
    method: 'eth_getBalance',
    params: [address, 'latest'],
    result: z
      .string()
      .regex(/^0x[0-9a-f]{1,64}$/i)
      .transform(BigInt),
    maxResponseBytes: smallAnswerBytes,
  };
}

function countCall(address: Address, at: 'latest' | 'pending'): RpcCall<number> {
  return {
    method: 'eth_getTransactionCount',
    params: [address, at],
    result: quantity.transform(Number).refine((count) => Number.isSafeInteger(count)),
    maxResponseBytes: smallAnswerBytes,
  };
}

function estimateCall(from: Address, to: Address, data: Hex): RpcCall<bigint> {
  return {
    method: 'eth_estimateGas',
    params: [{ from, to, data }],
    result: quantity,
    maxResponseBytes: smallAnswerBytes,
  };
}

function sendCall(raw: Hex): RpcCall<Hex> {
  return {
    method: 'eth_sendRawTransaction',
    params: [raw],
    result: bytes32,
    maxResponseBytes: smallAnswerBytes,
  };
}

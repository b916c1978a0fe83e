import { privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import { isExecutionFailure, shortCall } from '../../../base/peers/rpc/eth-call.ts';
import {
  type Rpc,
  type RpcAnswer,
  type RpcCall,
  RpcError,
  type RpcUnavailable,
} from '../../../base/peers/rpc/json-rpc.ts';
import { quantity } from '../../../base/peers/rpc/rpc-values.ts';
import type { Ask } from './blocks.ts';
import { knownTransactionCall, blockOf, receiptCall } from './transactions.ts';
import {
  type ContractCall,
  countCall,
  latestOf,
  maxTries,
  type NotSent,
  type Sent,
  SentTransactions,
} from './sent-transactions.ts';
import { readFees } from './transaction-fees.ts';
import { backOffMs } from '../../../base/values/back-off.ts';
import { pause } from '../../../base/runtime/pause.ts';

export type SendAnswer =
  | { readonly kind: 'landed'; readonly transaction: Hex; readonly block: { number: bigint; hash: Hex } }
  /** The contract reverted: in the gas estimate, or in a block, where `transaction` names it. */
  | { readonly kind: 'reverted'; readonly data: string | undefined; readonly transaction?: Hex }
  | NotSent
  /** Nothing was sent: its gas costs more than it may. */
  | { readonly kind: 'too_expensive'; readonly costWei: bigint }
  /** It may land at any time, or never. */
  | { readonly kind: 'unknown'; readonly transaction: Hex }
  /** The node could not be reached; nothing was sent. */
  | RpcUnavailable;

export interface TransactionSender {
  readonly address: Address;
  /**
   * Sends a call under the key's next nonce and waits up to `waitMs` until a block includes it; with 0 the answer to a call that
   * was sent is `unknown` immediately. A call that would revert is not sent, and one that is under way gets no second nonce. A call
   * whose nonce another transaction took is sent again, so only for calls that may safely run twice.
   * @param maxCostWei a call that costs more at today's fees is not sent
   */
  send(call: ContractCall, waitMs: number, maxCostWei?: bigint): Promise<SendAnswer>;
  /**
   * For a sent call that no `send` waits for: raises the fee of the transaction that holds up the key's others, and sends the
   * call's own one again if the node has dropped it, also one that another process has sent. Answers with the transaction that
   * may still land, which has another hash after a raise; undefined if there is none.
   */
  follow(call: ContractCall, transaction: Hex): Promise<RpcAnswer<Hex | undefined>>;
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
  /** The most that a transaction offers for a unit of gas; no limit if it is left out. */
  readonly maxFeePerGasWei?: bigint;
}

const pauses = { firstMs: 20, longestMs: 1_000, factor: 1.5 };

/**
 * A key on one chain. A transaction whose fee is too low delays all later ones, so a caller that waits, or follows, raises its
 * fee.
 */
export function createTransactionSender(options: TransactionSenderOptions): TransactionSender {
  const { rpc, chainId, timeoutMs, maxFeePerGasWei: mostWei } = options;
  const account = privateKeyToAccount(options.privateKey);
  const address = account.address.toLowerCase() as Address;
  const ask = <T>(call: RpcCall<T>): Promise<RpcAnswer<T>> => rpc.call(call, timeoutMs);
  const transactions = new SentTransactions(ask, account, chainId, mostWei);

  return {
    address,
    async funds(gas) {
      const balance = await ask(balanceCall(address));
      if (balance.kind === 'unavailable') return balance;
      const today = await readFees(ask, mostWei);
      if (today.kind === 'unavailable') return today;
      const { fees } = today.value;
      const price = fees.type === 'legacy' ? fees.gasPrice : fees.maxFeePerGas;
      return { kind: 'answer', value: { balanceWei: balance.value, costWei: gas * price } };
    },
    async send({ to, data }, waitMs, maxCostWei) {
      const endMs = performance.now() + waitMs;
      for (let tries = 1; ; tries++) {
        const gas = await ask(estimateCall(address, to, data));
        if (gas.kind === 'unavailable') return estimateFailure(gas);
        const today = await readFees(ask, mostWei);
        if (today.kind === 'unavailable') return today;
        const { fees, priceWei } = today.value;
        const costWei = gas.value * priceWei;
        const isTooMuch = maxCostWei !== undefined && costWei > maxCostWei;
        if (isTooMuch || (mostWei !== undefined && priceWei > mostWei))
          return { kind: 'too_expensive', costWei };
        const sent = await transactions.send({ to, data, gas: (gas.value * 3n) / 2n }, fees);
        if ('kind' in sent) return sent;
        if (waitMs === 0) return { kind: 'unknown', transaction: latestOf(sent) };
        const outcome = await awaitReceipt(ask, address, sent, endMs, (next) => transactions.raise(next));
        if (outcome.kind !== 'unknown') transactions.end(sent, outcome.kind === 'replaced');
        if (outcome.kind !== 'replaced') return outcome;
        if (tries === maxTries) return { kind: 'unknown', transaction: latestOf(sent) };
      }
    },
    follow: (call, transaction) => transactions.follow(call, transaction),
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

/** No node of the RPC knows any of them: one that lags may know a transaction, but not its receipt yet. */
async function areUnknown(ask: Ask, hashes: readonly Hex[]): Promise<boolean> {
  for (const hash of hashes) {
    const answer = await ask(knownTransactionCall(hash));
    if (answer.kind !== 'answer' || answer.value) return false;
  }
  return true;
}

function balanceCall(address: Address): RpcCall<bigint> {
  const wei = z
    .string()
    .regex(/^0x[0-9a-f]{1,64}$/i)
    .transform(BigInt);
  return shortCall('eth_getBalance', [address, 'latest'], wei);
}

function estimateCall(from: Address, to: Address, data: Hex): RpcCall<bigint> {
  return shortCall('eth_estimateGas', [{ from, to, data }], quantity);
}

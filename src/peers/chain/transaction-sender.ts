import { keccak256 } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { z } from 'zod';
import type { Address, Hex } from '../../domain/values/primitives.ts';
import { isExecutionFailure, smallAnswerBytes } from '../rpc/eth-call.ts';
import { type Rpc, type RpcAnswer, type RpcCall, RpcError, type RpcUnavailable } from '../rpc/json-rpc.ts';
import { bytes32, noBlockHash, quantity } from '../rpc/rpc-values.ts';
import { receiptCall } from './receipt.ts';
import { backOffMs } from '../../domain/values/back-off.ts';
import { pause } from '../../runtime/pause.ts';

/** What became of a transaction. */
export type SendAnswer =
  | { readonly kind: 'landed'; readonly transaction: Hex; readonly block: { number: bigint; hash: Hex } }
  /** The contract refused it: before it was sent, or in a block, where `transaction` names it. */
  | { readonly kind: 'reverted'; readonly data: string | undefined; readonly transaction?: Hex }
  /** The node did not take it, and nobody else has it. */
  | { readonly kind: 'not_sent'; readonly cause: string; readonly error?: Error }
  /** It may land at any time, or never. */
  | { readonly kind: 'unknown'; readonly transaction: Hex }
  /** Nothing could be asked, and nothing was sent. */
  | RpcUnavailable;

export interface TransactionSender {
  readonly address: Address;
  /**
   * Sends a call in the key's own order and waits up to `waitMs` until it is in a block. What would revert is not sent.
   * May send it again where another transaction took its nonce, so only for calls that are harmless twice.
   */
  send(call: { readonly to: Address; readonly data: Hex }, waitMs: number): Promise<SendAnswer>;
  /** What the key has, and what so much gas would cost it today, at the most that would be offered. */
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
  /** Of one question. */
  readonly timeoutMs: number;
}

/** What stands under one nonce; sent again for a higher fee it has another hash, and either may land. */
interface Sent {
  readonly nonce: number;
  readonly call: { readonly to: Address; readonly data: Hex; readonly gas: bigint };
  fees: Fees;
  raw: Hex;
  /** The latest last. */
  hashes: readonly [...Hex[], Hex];
}

type Fees =
  | { readonly type: 'eip1559'; readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint }
  | { readonly type: 'legacy'; readonly gasPrice: bigint };

/** A key's nonces may be taken by another process at the same moment. */
const maxTries = 8;
const pauses = { firstMs: 20, longestMs: 1_000, factor: 1.5 };
/** How often a transaction that does not land is held against the fees of the day. */
const raiseEveryMs = 3_000;

/**
 * A key on one chain. The node tells each transaction's nonce, so that a restart neither repeats nor skips one; what this
 * process has sent and the node does not count yet is sent again first, under its old nonce. One whose fee has fallen behind
 * holds up all that come after it, so whoever waits raises it.
 */
export function createTransactionSender(options: TransactionSenderOptions): TransactionSender {
  const { rpc, chainId, timeoutMs } = options;
  const account = privateKeyToAccount(options.privateKey);
  const address = account.address.toLowerCase() as Address;
  const ask = <T>(call: RpcCall<T>): Promise<RpcAnswer<T>> => rpc.call(call, timeoutMs);
  const open = new Map<number, Sent>();
  /** All that has not landed yet, as far as it is known. */
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

  /** Signs and sends under the first nonce that is free. Only one at a time: from asking to sent. */
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

  /** @param next the nonce that is to land next */
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
        if (gas.kind === 'unavailable') return refusedEarly(gas);
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

function refusedEarly(answer: RpcUnavailable): SendAnswer {
  const { cause, error } = answer;
  if (!(error instanceof RpcError)) return answer;
  return isExecutionFailure(error)
    ? { kind: 'reverted', data: error.data }
    : { kind: 'not_sent', cause, error };
}

type Ask = <T>(call: RpcCall<T>) => Promise<RpcAnswer<T>>;

/** `replaced`: another transaction of the same key has its nonce, so it never lands. */
async function awaitReceipt(
  ask: Ask,
  address: Address,
  sent: Sent,
  endMs: number,
  raise: (next: number) => Promise<void>,
): Promise<SendAnswer | { readonly kind: 'replaced' }> {
  for (let looks = 0; ; looks += 1) {
    // before the receipt: a transaction that lands between the two questions is not taken for replaced
    const mined = await ask(countCall(address, 'latest'));
    let isWithoutReceipt = true;
    for (const hash of sent.hashes) {
      const receipt = await ask(receiptCall(hash));
      const found = receipt.kind === 'answer' ? receipt.value : undefined;
      if (found?.blockHash && found.blockNumber !== null && found.blockHash !== noBlockHash) {
        if (found.status === '0x0') return { kind: 'reverted', data: undefined, transaction: hash };
        const block = { number: found.blockNumber, hash: found.blockHash };
        return { kind: 'landed', transaction: hash, block };
      }
      isWithoutReceipt &&= receipt.kind === 'answer';
    }
    const isGone = isWithoutReceipt && mined.kind === 'answer' && mined.value > sent.nonce;
    if (isGone && (await areForgotten(ask, sent.hashes))) return { kind: 'replaced' };
    // no more can be learned of it once the connections are closed
    const isClosed = mined.kind === 'unavailable' && mined.cause === 'closed';
    const pauseMs = backOffMs(pauses, looks);
    if (isClosed || performance.now() + pauseMs >= endMs)
      return { kind: 'unknown', transaction: latestOf(sent) };
    await pause(pauseMs);
    if (mined.kind === 'answer') await raise(mined.value);
  }
}

function latestOf({ hashes }: Sent): Hex {
  return hashes.at(-1) ?? hashes[0];
}

/** A node that is behind another may know the transaction, but not its receipt. */
async function areForgotten(ask: Ask, hashes: readonly Hex[]): Promise<boolean> {
  for (const hash of hashes) {
    const answer = await ask({
      method: 'eth_getTransactionByHash',
      params: [hash],
      result: z.looseObject({}).nullable(),
      maxResponseBytes: smallAnswerBytes,
    });
    if (answer.kind !== 'answer' || answer.value !== null) return false;
  }
  return true;
}

const gweiWei = 1_000_000_000n;

/** Twice the block's fee: full blocks ahead of us may raise it. Chains without one have a price. */
async function readFees(ask: Ask): Promise<RpcAnswer<Fees>> {
  const block = await ask({
    method: 'eth_getBlockByNumber',
    params: ['latest', false],
    result: z.looseObject({ baseFeePerGas: quantity.nullish() }),
    maxResponseBytes: maxBlockBytes,
  });
  if (block.kind === 'unavailable') return block;
  const base = block.value.baseFeePerGas ?? undefined;
  if (base === undefined) {
    const price = await ask(priceCall('eth_gasPrice'));
    return price.kind === 'unavailable'
      ? price
      : { kind: 'answer', value: { type: 'legacy', gasPrice: (price.value * 5n) / 4n } };
  }
  // not every node knows this one
  const tip = await ask(priceCall('eth_maxPriorityFeePerGas'));
  const maxPriorityFeePerGas = tip.kind === 'answer' ? tip.value : gweiWei;
  return {
    kind: 'answer',
    value: { type: 'eip1559', maxFeePerGas: base * 2n + maxPriorityFeePerGas, maxPriorityFeePerGas },
  };
}

/** What nodes want above a fee to take another transaction in its place: a tenth, an eighth to be sure. */
const leastRaise = (fee: bigint): bigint => fee + fee / 8n + 1n;

/** The fees of the day, where those that were offered are so far below that more is wanted; never less than nodes want. */
function raisedFees(offered: Fees, today: Fees): Fees | undefined {
  const atLeast = (fee: bigint, old: bigint): bigint => (fee > leastRaise(old) ? fee : leastRaise(old));
  if (offered.type === 'legacy' && today.type === 'legacy')
    return today.gasPrice > leastRaise(offered.gasPrice) ? today : undefined;
  if (offered.type === 'legacy' || today.type === 'legacy') return undefined;
  if (today.maxFeePerGas <= leastRaise(offered.maxFeePerGas)) return undefined;
  const { maxFeePerGas, maxPriorityFeePerGas } = today;
  return {
    type: 'eip1559',
    maxFeePerGas,
    maxPriorityFeePerGas: atLeast(maxPriorityFeePerGas, offered.maxPriorityFeePerGas),
  };
}

/** A block that names all its transactions. */
const maxBlockBytes = 4 * 1024 * 1024;

function priceCall(method: 'eth_gasPrice' | 'eth_maxPriorityFeePerGas'): RpcCall<bigint> {
  return { method, params: [], result: quantity, maxResponseBytes: smallAnswerBytes };
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

/** Nodes say it in words only; these are those of geth, Nethermind, Erigon, Besu and anvil. */
const knownWords = /already known|already imported|known transaction|alreadyknown/i;
const takenWords = /nonce (?:is )?too low|old ?nonce|nonce .*already (?:been )?used|invalid nonce/i;
const replacementWords = /replacement transaction|underpriced/i;

function isKnown({ error }: RpcUnavailable): boolean {
  return error instanceof RpcError && knownWords.test(error.reason);
}

/** Where no answer came it may have arrived all the same. */
function mayHaveArrived(answer: RpcUnavailable): boolean {
  return isKnown(answer) || !(answer.error instanceof RpcError);
}

function isReplacement({ error }: RpcUnavailable): boolean {
  return error instanceof RpcError && replacementWords.test(error.reason);
}

function isTaken(answer: RpcUnavailable): boolean {
  const { error } = answer;
  return isReplacement(answer) || (error instanceof RpcError && takenWords.test(error.reason));
}

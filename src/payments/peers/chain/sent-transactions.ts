import type { LocalAccount } from 'viem';
import { keccak256 } from 'viem/utils';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import {
  type RpcAnswer,
  type RpcCall,
  type RpcUnavailable,
  RpcError,
} from '../../../base/peers/rpc/json-rpc.ts';
import { bytes32, safeQuantity } from '../../../base/peers/rpc/rpc-values.ts';
import type { Ask } from './blocks.ts';
import { type KnownTransaction, ownTransactionCall } from './transactions.ts';
import { type Fees, raisedFees, readFees } from './transaction-fees.ts';
import { shortCall } from '../../../base/peers/rpc/eth-call.ts';

export interface ContractCall {
  readonly to: Address;
  readonly data: Hex;
}

/** A call with the gas that its transaction may use. */
export interface GasCall extends ContractCall {
  readonly gas: bigint;
}

/** A transaction of one nonce. Sent again for a higher fee it has another hash, and either may land. */
export interface Sent {
  readonly nonce: number;
  readonly call: GasCall;
  fees: Fees;
  raw: Hex;
  /** The latest last. */
  hashes: readonly [...Hex[], Hex];
}

/** The node refused it, and no other node has it. */
export interface NotSent {
  readonly kind: 'not_sent';
  readonly cause: string;
  readonly error?: Error;
}

/** Another process with the same key may take a nonce at the same moment. */
export const maxTries = 8;
/** How often the fee of a transaction that does not land is compared with today's. */
const raiseEveryMs = 3_000;

/**
 * The transactions of one key that may still land. Each nonce comes from the node, so that a restart neither repeats nor skips
 * one; a transaction that this process has sent and the node does not count yet is sent again first, under its old nonce.
 */
export class SentTransactions {
  readonly #ask: Ask;
  readonly #account: LocalAccount;
  readonly #address: Address;
  readonly #chainId: number;
  readonly #maxFeePerGasWei: bigint | undefined;
  /** Those that the node may have lost. */
  readonly #open = new Map<number, Sent>();
  /** Every transaction that is not known to have landed. */
  readonly #underWay = new Map<number, Sent>();
  #raisedAtMs = performance.now();
  #lastTurn: Promise<unknown> = Promise.resolve();

  constructor(ask: Ask, account: LocalAccount, chainId: number, maxFeePerGasWei: bigint | undefined) {
    this.#ask = ask;
    this.#account = account;
    this.#address = account.address.toLowerCase() as Address;
    this.#chainId = chainId;
    this.#maxFeePerGasWei = maxFeePerGasWei;
  }

  /** Signs and sends a call under the first free nonce. Runs one at a time, from reading the nonce to sending. */
  send(call: GasCall, fees: Fees): Promise<Sent | NotSent | RpcUnavailable> {
    const turn = this.#lastTurn.then(() => this.#send(call, fees));
    this.#lastTurn = turn.catch(() => undefined);
    return turn;
  }

  /** It has landed, or another transaction has its nonce. */
  end({ nonce }: Sent, isReplaced: boolean): void {
    this.#open.delete(nonce);
    if (isReplaced) this.#underWay.delete(nonce);
  }

  /**
   * Raises the fee of the transaction that holds up all later ones, if it is too low by now, up to the highest fee. It is
   * raised also if it costs more than its own call may: the others wait for it.
   * @param next the nonce that lands next
   */
  async raise(next: number): Promise<void> {
    this.#forgetBefore(next);
    const first = this.#underWay.get(next);
    if (!first || performance.now() < this.#raisedAtMs + raiseEveryMs) return;
    this.#raisedAtMs = performance.now();
    const today = await readFees(this.#ask, this.#maxFeePerGasWei);
    const raised = today.kind === 'answer' ? raisedFees(first.fees, today.value.fees) : undefined;
    if (!raised) return;
    const raw = await this.#sign(first.call, next, raised);
    const answer = await this.#ask(sendCall(raw));
    if (answer.kind !== 'answer' && !mayHaveArrived(answer)) return;
    Object.assign(first, { raw, fees: raised, hashes: [...first.hashes, keccak256(raw)] });
  }

  /** See `TransactionSender.follow`. */
  async follow(call: ContractCall, transaction: Hex): Promise<RpcAnswer<Hex | undefined>> {
    const next = await this.#ask(countCall(this.#address, 'latest'));
    if (next.kind === 'unavailable') return next;
    const known = await this.#ask(ownTransactionCall(transaction, this.#address));
    if (known.kind === 'unavailable') return known;
    this.#forgetBefore(next.value);
    const isPending = known.value !== null && known.value.nonce >= next.value;
    if (known.value && isPending) await this.#adopt(call, known.value, transaction);
    const ours = [...this.#underWay.values()].find(({ hashes }) => hashes.includes(transaction));
    if (!ours && !isPending) return { kind: 'answer', value: undefined };
    if (ours && !known.value) await this.#ask(sendCall(ours.raw));
    await this.raise(next.value);
    return { kind: 'answer', value: ours ? latestOf(ours) : transaction };
  }

  async #send(call: GasCall, fees: Fees): Promise<Sent | NotSent | RpcUnavailable> {
    const same = await this.#sendAgain(call);
    if (same) return same;
    let floor = 0;
    for (let tries = 1; ; tries++) {
      const next = await this.#nextNonce(floor);
      if (next.kind === 'unavailable') return next;
      const nonce = next.value;
      const raw = await this.#sign(call, nonce, fees);
      const answer = await this.#ask(sendCall(raw));
      const sent: Sent = { nonce, call, fees, raw, hashes: [keccak256(raw)] };
      if (answer.kind === 'answer' || mayHaveArrived(answer)) {
        this.#open.set(nonce, sent);
        this.#underWay.set(nonce, sent);
        return sent;
      }
      if (!isTaken(answer) || tries === maxTries)
        return { kind: 'not_sent', cause: answer.cause, ...(answer.error && { error: answer.error }) };
      floor = isReplacement(answer) ? nonce + 1 : 0;
    }
  }

  /** Sends a call again that is under way, under its old nonce. Undefined if it is not. */
  async #sendAgain({ to, data }: ContractCall): Promise<Sent | RpcUnavailable | undefined> {
    const find = (): Sent | undefined =>
      [...this.#underWay.values()].find(({ call }) => call.to === to && call.data === data);
    if (!find()) return undefined;
    const next = await this.#ask(countCall(this.#address, 'latest'));
    if (next.kind === 'unavailable') return next;
    this.#forgetBefore(next.value);
    const same = find();
    if (!same) return undefined;
    await this.#ask(sendCall(same.raw));
    await this.raise(next.value);
    return same;
  }

  async #nextNonce(floor: number): Promise<RpcAnswer<number>> {
    const pending = await this.#ask(countCall(this.#address, 'pending'));
    if (pending.kind === 'unavailable') return pending;
    for (const nonce of this.#open.keys()) if (nonce < pending.value) this.#open.delete(nonce);
    let nonce = pending.value;
    for (let lost = this.#open.get(nonce); lost !== undefined; lost = this.#open.get(nonce)) {
      const answer = await this.#ask(sendCall(lost.raw));
      if (answer.kind === 'unavailable' && !isKnown(answer) && !isTaken(answer)) break;
      nonce++;
    }
    return { kind: 'answer', value: Math.max(nonce, floor) };
  }

  /** Takes over a transaction of another process. Of it, only nonce, gas and fees come from the node. */
  async #adopt(
    { to, data }: ContractCall,
    { nonce, gas, fees }: KnownTransaction,
    transaction: Hex,
  ): Promise<void> {
    const feeWei = fees.type === 'legacy' ? fees.gasPrice : fees.maxFeePerGas;
    // a false answer must not make this process sign for any fee
    const isTooHigh = this.#maxFeePerGasWei !== undefined && feeWei > this.#maxFeePerGasWei;
    if (isTooHigh || this.#underWay.has(nonce)) return;
    const call = { to, data, gas };
    const raw = await this.#sign(call, nonce, fees);
    this.#underWay.set(nonce, { nonce, call, fees, raw, hashes: [transaction] });
  }

  #forgetBefore(next: number): void {
    for (const nonce of this.#underWay.keys()) if (nonce < next) this.#underWay.delete(nonce);
  }

  #sign(call: GasCall, nonce: number, fees: Fees): Promise<Hex> {
    return this.#account.signTransaction({ chainId: this.#chainId, ...call, nonce, ...fees });
  }
}

export function latestOf({ hashes }: Sent): Hex {
  return hashes.at(-1) ?? hashes[0];
}

export function countCall(address: Address, at: 'latest' | 'pending'): RpcCall<number> {
  return shortCall('eth_getTransactionCount', [address, at], safeQuantity);
}

function sendCall(raw: Hex): RpcCall<Hex> {
  return shortCall('eth_sendRawTransaction', [raw], bytes32);
}

/** Nodes tell these cases apart only by their messages: those of geth, Nethermind, Erigon, Besu and anvil. */
const knownWords = /already known|already imported|known transaction|alreadyknown/i;
const takenWords = /nonce (?:is )?too low|old ?nonce|nonce .*already (?:been )?used|invalid nonce/i;
const replacementWords = /replacement transaction|underpriced/i;

/** The node has this very transaction already. */
function isKnown({ error }: RpcUnavailable): boolean {
  return error instanceof RpcError && knownWords.test(error.reason);
}

/** Without an answer the transaction may have arrived nevertheless. */
function mayHaveArrived(answer: RpcUnavailable): boolean {
  return isKnown(answer) || !(answer.error instanceof RpcError);
}

/** The nonce has a pending transaction, which this one does not outbid. */
function isReplacement({ error }: RpcUnavailable): boolean {
  return error instanceof RpcError && replacementWords.test(error.reason);
}

/** Another transaction has the nonce, pending or mined. */
function isTaken(answer: RpcUnavailable): boolean {
  const { error } = answer;
  return isReplacement(answer) || (error instanceof RpcError && takenWords.test(error.reason));
}

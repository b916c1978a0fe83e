import { encodeFunctionData, parseAbi, toFunctionSelector } from 'viem/utils';
import type { Address, Hex } from '../../../base/values/primitives.ts';
import type { SpendAuth } from '../../../accounts/rules/spend/spend-auth.ts';
import { askTaggedBlock, type BlockAnswer, type Ask } from '../../../payments/peers/chain/blocks.ts';
import { type BlockTag, ethCall, hexBytes } from '../../../base/peers/rpc/eth-call.ts';
import {
  createRpc,
  type RpcAnswer,
  type RpcUnavailable,
  unavailable,
} from '../../../base/peers/rpc/json-rpc.ts';
import {
  type Finality,
  finalityOf,
  findLanded,
  findSpendEnd,
  type Landed,
  shareFinalized,
  type SpendEnd,
} from './spend-end.ts';
import { type CostReading, readCost } from '../../../payments/peers/chain/transaction-cost.ts';
import {
  createTransactionSender,
  type Funds,
  type SendAnswer,
  type TransactionSenderOptions,
} from '../../../payments/peers/chain/transaction-sender.ts';

export type { Landed, SpendEnd } from './spend-end.ts';

/** An account of the prepaid contract. */
export interface CreditsAccount {
  readonly spendingKey: Address;
  readonly token: Address;
  /** Atoms. */
  readonly balance: bigint;
  /** The nonce of the account's next spend. */
  readonly nonce: bigint;
}

/** A spend that was authorized on the chain. */
export interface SpendRecord {
  /** Atoms. */
  readonly amount: bigint;
  readonly operator: Address;
  /** Unix seconds; the operator may collect it up to and including this second. */
  readonly expiry: bigint;
  /** Paid out to its operator, or reclaimed by its account. */
  readonly claimed: boolean;
}

/** The outcome of a transaction to the contract. After `unknown`, `getSpendAuth` shows whether it has landed. */
export type CreditsAnswer =
  | ({ readonly kind: 'landed' } & Landed)
  /** A machine-readable code: the contract's own error when it is known, else `reverted`. */
  | { readonly kind: 'reverted'; readonly reason: string; readonly transaction?: Hex }
  /** The node refused it and it was not broadcast: the operator's key may have no ether. */
  | { readonly kind: 'not_sent'; readonly cause: string; readonly error?: Error }
  /** Nothing was sent: its gas costs more than it may. */
  | { readonly kind: 'too_expensive'; readonly costWei: bigint }
  | { readonly kind: 'unknown'; readonly transaction: Hex }
  | RpcUnavailable;

/** A prepaid contract, and the operator's key that it pays. */
export interface PrepaidContract {
  /** The address of the key. */
  readonly operator: Address;
  /** An account at a block, by default the latest; undefined in the answer if there is none. */
  getAccount(commitment: Hex, at?: BlockTag): Promise<RpcAnswer<CreditsAccount | undefined>>;
  /** An authorized spend at a block, by default the latest; undefined in the answer if there is none. */
  getSpendAuth(authHash: Hex, at?: BlockTag): Promise<RpcAnswer<SpendRecord | undefined>>;
  /** Lands a spend, waiting up to `waitMs`; with 0 it is only sent. Safe to repeat: the contract accepts a nonce once. */
  authorizeSpend(auth: SpendAuth, waitMs: number, maxCostWei?: bigint): Promise<CreditsAnswer>;
  /** Has the whole amount of an authorized spend paid to `recipient`. Safe to repeat. */
  claimPayment(
    authHash: Hex,
    recipient: Address,
    waitMs: number,
    maxCostWei?: bigint,
  ): Promise<CreditsAnswer>;
  /**
   * Helps a payout transaction that has not landed; see `TransactionSender.follow`. Answers with the transaction that may still
   * land; undefined if there is none.
   */
  followPayment(authHash: Hex, recipient: Address, transaction: Hex): Promise<RpcAnswer<Hex | undefined>>;
  /** How a spend ended, by the contract's logs from a time (Unix seconds) to the latest block. */
  findSpendEnd(authHash: Hex, sinceSecs: number): Promise<RpcAnswer<SpendEnd | undefined>>;
  /** The block of a successful transaction; undefined in the answer when no block includes it. */
  findLanded(transaction: Hex): Promise<RpcAnswer<Landed | undefined>>;
  /** Whether the block of a landed transaction is final. */
  finalityOf(landed: Landed): Promise<RpcAnswer<Finality>>;
  /** What a transaction cost its sender, once its block is final. */
  readCost(transaction: Hex): Promise<CostReading>;
  /** The chain's latest finalized block. */
  finalizedBlock(): Promise<BlockAnswer>;
  /** The ether of the operator's key, and the cost of landing and paying out one spend at current fees. */
  funds(): Promise<RpcAnswer<Funds>>;
  /** Waits for running calls, then drops the connections. */
  close(): Promise<void>;
}

/** The private key is the operator's. */
export interface CreditsOptions extends Omit<TransactionSenderOptions, 'rpc'> {
  readonly rpcUrl: string;
  readonly contract: Address;
}

/** @throws TypeError when the URL is invalid, which is a mistake in the configuration */
export function createPrepaidContract(options: CreditsOptions): PrepaidContract {
  const { chainId, contract, privateKey, timeoutMs, maxFeePerGasWei } = options;
  const rpc = createRpc(options.rpcUrl);
  const most = maxFeePerGasWei === undefined ? {} : { maxFeePerGasWei };
  const sender = createTransactionSender({ rpc, chainId, privateKey, timeoutMs, ...most });
  const send = async (data: Hex, waitMs: number, maxCostWei?: bigint): Promise<CreditsAnswer> =>
    creditsAnswer(await sender.send({ to: contract, data }, waitMs, maxCostWei));
  const ask: Ask = (call) => rpc.call(call, timeoutMs);
  const askFinalized = shareFinalized(ask);
  const words = async (data: Hex, count: number, at?: BlockTag): Promise<RpcAnswer<readonly Word[]>> => {
    const answer = await ask(ethCall({ to: contract, data }, hexBytes, at));
    if (answer.kind === 'unavailable') return answer;
    const found = wordsOf(answer.value);
    // a call to an address without code returns nothing
    return found.length === count ? { kind: 'answer', value: found } : unavailable('malformed');
  };

  return {
    operator: sender.address,
    async getAccount(commitment, at) {
      const answer = await words(`${accountSelector}${commitment.slice(2)}`, 6, at);
      return answer.kind === 'answer' ? readAccount(answer.value) : answer;
    },
    async getSpendAuth(authHash, at) {
      const answer = await words(`${spendSelector}${authHash.slice(2)}`, 5, at);
      return answer.kind === 'answer' ? readSpend(answer.value) : answer;
    },
    authorizeSpend(auth, waitMs, maxCostWei) {
      const data = encodeFunctionData({ abi, functionName: 'authorizeSpend', args: [auth] });
      return send(data, waitMs, maxCostWei);
    },
    claimPayment: (authHash, recipient, waitMs, maxCostWei) =>
      send(claimData(authHash, recipient), waitMs, maxCostWei),
    followPayment: (authHash, recipient, transaction) =>
      sender.follow({ to: contract, data: claimData(authHash, recipient) }, transaction),
    findSpendEnd: (authHash, sinceSecs) => findSpendEnd(ask, contract, authHash, sinceSecs),
    findLanded: (transaction) => findLanded(ask, transaction),
    finalityOf: (landed) => finalityOf(ask, askFinalized, landed),
    readCost: (transaction) => readCost(ask, transaction, askFinalized),
    finalizedBlock: () => askTaggedBlock(ask, 'finalized'),
    funds: () => sender.funds(spendGas),
    close: () => rpc.close(),
  };
}

/** Gas of landing and paying out one spend, with the margin of each transaction. */
const spendGas = 400_000n;

const abi = parseAbi([
  'struct SpendAuth { bytes32 commitment; uint64 serviceId; uint8 jobIndex; uint256 amount; address operator; uint256 nonce; uint64 expiry; bytes signature; }',
  'function authorizeSpend(SpendAuth auth) returns (bytes32)',
  'function claimPayment(bytes32 authHash, address recipient)',
]);
function claimData(authHash: Hex, recipient: Address): Hex {
  return encodeFunctionData({ abi, functionName: 'claimPayment', args: [authHash, recipient] });
}
const accountSelector = toFunctionSelector('getAccount(bytes32)');
const spendSelector = toFunctionSelector('getSpendAuth(bytes32)');

/** The contract's errors, by selector, and the code reported for each. */
const errors = new Map(
  Object.entries({
    account_not_found: 'AccountNotFound(bytes32)',
    insufficient_credits: 'InsufficientCredits(uint256,uint256)',
    invalid_signature: 'InvalidSignature()',
    invalid_nonce: 'InvalidNonce(uint256,uint256)',
    spend_expired: 'SpendExpired(uint64,uint256)',
    already_claimed: 'AlreadyClaimed(bytes32)',
    not_designated_operator: 'NotDesignatedOperator(address,address)',
    auth_not_found: 'AuthNotFound(bytes32)',
    operator_required: 'OperatorRequired()',
  }).map(([code, signature]) => [toFunctionSelector(signature), code] as const),
);

function creditsAnswer(answer: SendAnswer): CreditsAnswer {
  if (answer.kind !== 'reverted') return answer;
  const { data, transaction } = answer;
  const selector = data?.slice(0, 10).toLowerCase() as Hex | undefined;
  const reason = (selector && errors.get(selector)) ?? 'reverted';
  return { kind: 'reverted', reason, ...(transaction && { transaction }) };
}

/** An ABI word: 64 hexadecimal digits. */
type Word = string;

function wordsOf(data: string): Word[] {
  return data.slice(2).match(/.{64}/g) ?? [];
}

const numberOf = (word: Word = ''): bigint => BigInt(`0x${word}`);
const addressOf = (word: Word = ''): Address => `0x${word.slice(24)}`;
const zeroAddress = addressOf('0'.repeat(64));

function readAccount([key, token, balance, , , nonce]: readonly Word[]): RpcAnswer<
  CreditsAccount | undefined
> {
  const spendingKey = addressOf(key);
  const value =
    spendingKey === zeroAddress
      ? undefined
      : { spendingKey, token: addressOf(token), balance: numberOf(balance), nonce: numberOf(nonce) };
  return { kind: 'answer', value };
}

function readSpend([amount, , of, expiry, claimed]: readonly Word[]): RpcAnswer<SpendRecord | undefined> {
  const operator = addressOf(of);
  const value =
    operator === zeroAddress
      ? undefined
      : { amount: numberOf(amount), operator, expiry: numberOf(expiry), claimed: numberOf(claimed) !== 0n };
  return { kind: 'answer', value };
}

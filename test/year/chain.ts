import { encodeFunctionData, parseAbi } from 'viem';
import { devnetAddress } from '../../src/devnet/accounts.ts';
import { multicall3Address, startChain } from '../../src/devnet/chain.ts';
import { multicall3, testToken } from '../../src/devnet/contracts.ts';
import { deployOnce } from '../../src/devnet/deploy.ts';
import { balanceOf, deployTokens, devnetTokens } from '../../src/devnet/token.ts';
import type { SignedPayment } from '../../src/payments/rules/payment.ts';
import type { Proof } from '../../src/payments/rules/settlement.ts';
import type { Address, Caip2, Hex } from '../../src/base/values/primitives.ts';
import { askNode } from '../support/tokens.ts';

export const network: Caip2 = 'eip155:84532';
export const chainId = 84_532;

/** Accounts of the operator, each with a key that the node holds: those that are paid to, and one that is not. */
export const payTo = devnetAddress('payTo');
export const vault = devnetAddress('thirdSpare');
/** Pays refunds in batches. */
export const multisig = multicall3Address;
/** Sends money without a payment. */
export const stranger = devnetAddress('spare');
const facilitator = devnetAddress('facilitator');

export interface YearToken {
  readonly address: Address;
  readonly symbol: string;
  readonly name: string;
  readonly version: string;
  readonly decimals: number;
}

/** Where a transfer is on the chain. */
export interface Landed {
  readonly transaction: Hex;
  readonly proof: Proof;
}

export interface MinedBlock {
  readonly number: bigint;
  /** By `token/payer/nonce`. */
  readonly payments: ReadonlyMap<string, Landed>;
  /** Its transactions that were reverted. */
  readonly reverted: readonly Hex[];
}

/** The local chain of a year: blocks come when they are asked for, with the time that is given. */
export interface YearChain {
  readonly rpcUrl: string;
  readonly pid: number;
  readonly tokens: readonly YearToken[];
  /** Sends authorized transfers to the next block, many in a transaction; the first ones each in its own transaction. */
  submit(payments: readonly SignedPayment[], singly?: number): Promise<void>;
  /** Sends a plain transfer to the next block, and returns its transaction. */
  send(token: YearToken, from: Address, to: Address, atoms: bigint): Promise<Hex>;
  /** Sends calls of the operator's multisig to the next block, as one transaction: it pays with tokens of its own. */
  sendTogether(calls: readonly { readonly to: Address; readonly data: string }[]): Promise<Hex>;
  mine(atMs: number): Promise<MinedBlock>;
  /** Who sent a transaction, and what its gas cost. */
  gasOf(transaction: Hex): Promise<{ readonly payer: Address; readonly wei: bigint }>;
  /** The place of the only transfer of a transaction. */
  placeOf(transaction: Hex): Promise<Proof>;
  /** Remembers the present block; the returned function goes back to it, so that all later blocks never were. */
  remember(): Promise<() => Promise<void>>;
  balance(token: YearToken, holder: Address, block?: bigint): Promise<bigint>;
  stop(): Promise<void>;
}

const authorized = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
]);
const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const authorizationTopic = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';
/** Beside the devnet's own two: a token with other decimals. */
const thirdToken = { name: 'Wide Coin', symbol: 'WIDE', version: '1', decimals: 18 } as const;
const startingUnits = 10_000_000n;
const paymentsATransaction = 50;
const gasOfMany = '0xf42400';
const gasOfOne = '0x493e0';
/** Enough for the payments of a block. */
const blockGas = '0x174876e800';

export function paymentKey({
  asset,
  payer,
  nonce,
}: Pick<SignedPayment, 'asset' | 'payer' | 'nonce'>): string {
  return `${asset}/${payer}/${nonce}`;
}

/** Units of a token as atoms. */
export function units({ decimals }: Pick<YearToken, 'decimals'>, count: bigint): bigint {
  return count * 10n ** BigInt(decimals);
}

export async function startYearChain(beginsAt: Date, payers: readonly Address[]): Promise<YearChain> {
  const chain = await startChain({ beginsAt });
  const first = await deployTokens(chain);
  const { name, symbol, version, decimals } = thirdToken;
  const args = [name, symbol, version, decimals];
  const third = await deployOnce(chain, { label: symbol, artifact: testToken, args, nonce: 2 });
  const tokens: YearToken[] = [
    { ...devnetTokens[0], address: first.token },
    { ...devnetTokens[1], address: first.secondToken },
    { ...thirdToken, address: third },
  ];
  const ask = (method: string, ...params: readonly unknown[]): Promise<unknown> =>
    askNode(chain.url, method, params);
  await ask('evm_setIntervalMining', 0);
  await ask('evm_setAutomine', false);
  await ask('evm_setBlockGasLimit', blockGas);

  const transact = (from: Address, to: Address, data: Hex, gas: string): Promise<Hex> =>
    ask('eth_sendTransaction', { from, to, data, gas }) as Promise<Hex>;
  const sendMany = (made: readonly { readonly target: Address; readonly callData: Hex }[]): Promise<Hex> => {
    const calls = made.map((call) => ({ ...call, allowFailure: false }));
    const data = encodeFunctionData({ abi: multicall3.abi, functionName: 'aggregate3', args: [calls] });
    return transact(facilitator, multicall3Address, data, gasOfMany);
  };
  for (const token of tokens) {
    const atoms = units(token, startingUnits);
    await sendMany(
      [...payers, stranger, vault, multicall3Address].map((to) => ({
        target: token.address,
        callData: encodeFunctionData({ abi: testToken.abi, functionName: 'mint', args: [to, atoms] }),
      })),
    );
  }
  // payers may send transactions of their own
  await ask('anvil_autoImpersonateAccount', true);
  for (const payer of payers) await ask('anvil_setBalance', payer, '0xde0b6b3a7640000');
  await ask('evm_mine');
  return {
    rpcUrl: chain.url,
    pid: chain.pid,
    tokens,
    async submit(payments, singly = 2) {
      for (const one of payments.slice(0, singly))
        await transact(facilitator, one.asset, callOf(one), gasOfOne);
      for (let next = singly; next < payments.length; next += paymentsATransaction)
        await sendMany(
          payments
            .slice(next, next + paymentsATransaction)
            .map((one) => ({ target: one.asset, callData: callOf(one) })),
        );
    },
    send({ address }, from, to, atoms) {
      const data = encodeFunctionData({ abi: testToken.abi, functionName: 'transfer', args: [to, atoms] });
      return transact(from, address, data, gasOfOne);
    },
    sendTogether: (calls) => sendMany(calls.map(({ to, data }) => ({ target: to, callData: data as Hex }))),
    async mine(atMs) {
      await ask('evm_setNextBlockTimestamp', Math.floor(atMs / 1_000));
      await ask('evm_mine');
      return readBlock((await ask('eth_getBlockReceipts', 'latest')) as Receipt[], await numberOfBlock(ask));
    },
    async gasOf(transaction) {
      const receipt = (await ask('eth_getTransactionReceipt', transaction)) as Receipt;
      const { from: payer, gasUsed, effectiveGasPrice } = receipt;
      return { payer, wei: BigInt(gasUsed) * BigInt(effectiveGasPrice) };
    },
    async placeOf(transaction) {
      const { logs } = (await ask('eth_getTransactionReceipt', transaction)) as Receipt;
      const log = logs.find(({ topics }) => topics[0] === transferTopic);
      if (!log) throw new Error(`${transaction} moved nothing`);
      return placeIn(log);
    },
    async remember() {
      const id = await ask('evm_snapshot');
      return async () => void (await ask('evm_revert', id));
    },
    async balance({ address }, holder, block) {
      if (block === undefined) return balanceOf(chain.url, address, holder);
      const data = encodeFunctionData({ abi: testToken.abi, functionName: 'balanceOf', args: [holder] });
      return BigInt((await ask('eth_call', { to: address, data }, `0x${block.toString(16)}`)) as string);
    },
    stop: () => chain.stop(),
  };
}

function callOf({ payer, payTo: to, amount, nonce, validAfter, validBefore, signature }: SignedPayment): Hex {
  const args = [payer, to, amount, validAfter, validBefore, nonce, signature] as const;
  return encodeFunctionData({ abi: authorized, functionName: 'transferWithAuthorization', args });
}

async function numberOfBlock(ask: (method: string) => Promise<unknown>): Promise<bigint> {
  return BigInt((await ask('eth_blockNumber')) as string);
}

interface Receipt {
  readonly from: Address;
  readonly gasUsed: Hex;
  readonly effectiveGasPrice: Hex;
  readonly transactionHash: Hex;
  readonly status: string;
  readonly logs: readonly {
    readonly address: Address;
    readonly topics: readonly Hex[];
    readonly logIndex: Hex;
    readonly blockNumber: Hex;
    readonly blockHash: Hex;
    readonly blockTimestamp: Hex;
  }[];
}

/** The token logs an authorization, then the transfer that it moved. */
function readBlock(receipts: readonly Receipt[], number: bigint): MinedBlock {
  const payments = new Map<string, Landed>();
  for (const { transactionHash: transaction, logs } of receipts)
    for (const [i, log] of logs.entries()) {
      const [topic, payer = '0x', nonce = '0x'] = log.topics;
      const moved = logs[i + 1];
      if (topic !== authorizationTopic || moved?.topics[0] !== transferTopic) continue;
      const key = paymentKey({ asset: log.address, payer: `0x${payer.slice(26)}`, nonce });
      payments.set(key, { transaction, proof: placeIn(moved) });
    }
  const reverted = receipts.filter(({ status }) => status !== '0x1');
  return { number, payments, reverted: reverted.map(({ transactionHash }) => transactionHash) };
}

function placeIn({
  blockNumber,
  blockHash,
  logIndex,
  blockTimestamp,
}: Omit<Receipt['logs'][number], 'address' | 'topics'>): Proof {
  return {
    blockNumber: BigInt(blockNumber),
    blockHash,
    logIndex: Number(logIndex),
    blockTimeSecs: Number(blockTimestamp),
  };
}

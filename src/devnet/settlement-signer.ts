import { setTimeout as sleep } from 'node:timers/promises';
import { type FacilitatorEvmSigner, toFacilitatorEvmSigner } from '@x402/evm';
import {
  type Abi,
  type TransactionReceipt,
  TransactionReceiptNotFoundError,
  type VerifyTypedDataParameters,
  WaitForTransactionReceiptTimeoutError,
  concatHex,
  createWalletClient,
  defineChain,
  encodeFunctionData,
  http,
  parseTransaction,
  publicActions,
  recoverTransactionAddress,
  type TransactionSerialized,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import type { Hex } from '../base/values/primitives.ts';

export interface SettlementSignerOptions {
  readonly rpcUrl: string;
  readonly chainId: number;
  readonly privateKey: Hex;
}

type Write = Parameters<FacilitatorEvmSigner['writeContract']>[0];

interface Transaction {
  readonly to: Hex;
  readonly data: Hex;
  readonly gas?: bigint | undefined;
  readonly value?: bigint | undefined;
}

/** A facilitator's key that also submits a payer's signed approval before the payment that needs it. */
export interface SettlementSigner extends FacilitatorEvmSigner {
  /** In this order, each once the one before it is in a block. A text is a transaction that its sender has signed. */
  sendTransactions(transactions: readonly (Hex | Transaction)[]): Promise<Hex[]>;
}

const confirmationTimeoutMs = 30_000;
const firstPollMs = 5;
const slowestPollMs = 100;

/**
 * A facilitator's key in the SDK's interface. Any number of settlements may run concurrently: errors are
 * refused before a nonce is taken, then transactions are sent in turn.
 */
export function createSettlementSigner(options: SettlementSignerOptions): SettlementSigner {
  const client = clientOf(options);
  const send = sendInTurn(client);
  const signer = toFacilitatorEvmSigner(
    {
      address: client.account.address,
      getCode: ({ address }) => client.getCode({ address }),
      readContract: (read) => client.readContract({ ...read, abi: viemAbi(read.abi) }),
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same value, typed more loosely by the SDK
      verifyTypedData: (message) => client.verifyTypedData(message as VerifyTypedDataParameters),
      writeContract: (write) => send({ to: write.address, data: callData(write), gas: write.gas }),
      sendTransaction: send,
      waitForTransactionReceipt: ({ hash, timeout }) =>
        receiptOf(client, hash, timeout ?? confirmationTimeoutMs),
    },
    { confirmationTimeoutMs },
  );
  const sendSigned = async (serializedTransaction: Hex): Promise<Hex> => {
    await payGas(client, send, serializedTransaction);
    return client.sendRawTransaction({ serializedTransaction });
  };
  return {
    ...signer,
    async sendTransactions(transactions) {
      const hashes: Hex[] = [];
      for (const one of transactions) {
        const hash = await (typeof one === 'string' ? sendSigned(one) : send(one));
        // each needs what the one before it has done
        const { status } = await receiptOf(client, hash, confirmationTimeoutMs);
        if (status !== 'success') throw new Error(`transaction ${hash} failed`);
        hashes.push(hash);
      }
      return hashes;
    },
  };
}

/** Gives the sender of a signed transaction what its gas may cost at most, beyond what it has. */
async function payGas(
  client: SigningClient,
  send: (transaction: Transaction) => Promise<Hex>,
  signed: Hex,
): Promise<void> {
  const from = await recoverTransactionAddress({ serializedTransaction: signed as TransactionSerialized });
  const { gas = 0n, maxFeePerGas = 0n, gasPrice = maxFeePerGas } = parseTransaction(signed);
  const missing = gas * gasPrice - (await client.getBalance({ address: from }));
  if (missing <= 0n) return;
  const hash = await send({ to: from, data: '0x', value: missing });
  await receiptOf(client, hash, confirmationTimeoutMs);
}

type SigningClient = ReturnType<typeof clientOf>;

function clientOf({ rpcUrl, chainId, privateKey }: SettlementSignerOptions) {
  const chain = defineChain({
    id: chainId,
    name: 'facilitated',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  });
  const account = privateKeyToAccount(privateKey);
  return createWalletClient({ account, chain, transport: http(rpcUrl) }).extend(publicActions);
}

function callData({ abi, functionName, args, dataSuffix }: Write): Hex {
  const data = encodeFunctionData({ abi: viemAbi(abi), functionName, args });
  return dataSuffix === undefined ? data : concatHex([data, dataSuffix]);
}

/** The SDK types the ABIs it passes as lists of anything. */
function viemAbi(abi: readonly unknown[]): Abi {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its own constants, and viem checks what it reads
  return abi as Abi;
}

/**
 * The nonce is read from the node for each transaction and not cached: so it is right after a send that failed
 * halfway, and after a test has rolled the chain back. So one transaction at a time is sent, in some 2 ms on a local
 * chain.
 */
function sendInTurn(client: SigningClient): (transaction: Transaction) => Promise<Hex> {
  const { address } = client.account;
  let lastTurn: Promise<unknown> = Promise.resolve();
  return async ({ to, data, gas, value = 0n }) => {
    // a call that would revert fails here, and costs nothing
    const gasLimit = gas ?? ((await client.estimateGas({ to, data, value })) * 3n) / 2n;
    const { maxFeePerGas, maxPriorityFeePerGas } = await client.estimateFeesPerGas();
    const turn = lastTurn.then(async () => {
      const nonce = await client.getTransactionCount({ address, blockTag: 'pending' });
      // Twice the fee: full blocks ahead of us may raise it before our turn is mined.
      const fees = { maxFeePerGas: maxFeePerGas * 2n, maxPriorityFeePerGas };
      const raw = await client.signTransaction({
        type: 'eip1559',
        to,
        data,
        value,
        gas: gasLimit,
        nonce,
        ...fees,
      });
      return client.sendRawTransaction({ serializedTransaction: raw });
    });
    lastTurn = turn.catch(() => undefined);
    return turn;
  };
}

/** viem polls for each settlement at every block: with hundreds of settlements it overloads the node. */
async function receiptOf(client: SigningClient, hash: Hex, timeoutMs: number): Promise<TransactionReceipt> {
  const deadline = performance.now() + timeoutMs;
  for (let waitMs = firstPollMs; ; waitMs = Math.min(waitMs * 2, slowestPollMs)) {
    const receipt = await client.getTransactionReceipt({ hash }).catch(undefinedIfNotFound);
    if (receipt !== undefined) return receipt;
    if (performance.now() > deadline) throw new WaitForTransactionReceiptTimeoutError({ hash });
    await sleep(waitMs);
  }
}

function undefinedIfNotFound(error: unknown): undefined {
  if (!(error instanceof TransactionReceiptNotFoundError)) throw error;
}

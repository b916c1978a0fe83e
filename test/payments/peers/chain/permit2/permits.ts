import {
  concatHex,
  createWalletClient,
  encodeFunctionData,
  http,
  numberToHex,
  publicActions,
  size,
} from 'viem';
import type { TransactionReceipt } from 'viem';
import { expect, onTestFinished } from 'vitest';
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import { devnetAddress, devnetKeys, lowerCase } from '../../../../../src/devnet/accounts.ts';
import { multicall3Address, startChain } from '../../../../../src/devnet/chain.ts';
import {
  exactPermit2Proxy,
  multicall3,
  permit2Contract,
  testToken,
  uptoPermit2Proxy,
} from '../../../../../src/devnet/contracts.ts';
import { approvePermit2, deployTokens, devnetTokens } from '../../../../../src/devnet/token.ts';
import type { Address, Hex } from '../../../../../src/base/values/primitives.ts';
import { type Chain, createChain } from '../../../../../src/payments/peers/chain/chain.ts';
import { transferred } from '../../../../../src/payments/peers/chain/transfers.ts';
import type { ExpectedTransfer } from '../../../../../src/payments/rules/payment.ts';
import { permit2TypedData } from '../../../../../src/payments/rules/schemes/permit2/permit2.ts';
import { uptoTypedData } from '../../../../../src/payments/rules/schemes/permit2/upto.ts';
import {
  exactProxyAddress,
  nonceBit,
  permit2Address,
  uptoProxyAddress,
} from '../../../../../src/payments/rules/schemes/permit2/signature-transfer.ts';
import { authorizationTypes } from '../../../../support/payer.ts';
import { eventually } from '../../../../support/wait.ts';
import { refuse, type RpcRequest, startRpcStub, succeed } from '../../../../base/peers/rpc/rpc-stub.ts';
import { rpc } from '../authorizations.ts';

const payer = privateKeyToAccount(devnetKeys.payer);
const sender = privateKeyToAccount(devnetKeys.spare);

/** Its own chain, where Permit2 moves the payer's tokens without a facilitator. */
export type PermitChain = Awaited<ReturnType<typeof startPermitChain>>;

export async function startPermitChain() {
  const chain = await startChain();
  const { token } = await deployTokens(chain);
  await approvePermit2(chain, token, devnetKeys.payer);
  const clientOf = (account: PrivateKeyAccount) =>
    createWalletClient({ account, transport: http(chain.url), pollingInterval: 20 }).extend(publicActions);
  const send = async (to: Address, data: Hex, account = sender): Promise<TransactionReceipt> => {
    const client = clientOf(account);
    // a call that fails is sent as well
    const hash = await client.sendTransaction({ to, data, gas: 2_000_000n, chain: null });
    return client.waitForTransactionReceipt({ hash });
  };

  const network = `eip155:${chain.chainId}` as const;
  const validBefore = 1n << 64n;
  const termsOf = ({ asset, payTo, value: amount, nonce }: ExpectedTransfer) => {
    return { network, asset, payTo, amount, validAfter: 0n, validBefore, nonce };
  };

  /** The calldata of x402's contract that uses a nonce, for the expected transfer or another one. */
  const settleData = async (expected: ExpectedTransfer): Promise<Hex> => {
    const typed = permit2TypedData(termsOf(expected));
    const { permitted, deadline, witness } = typed.message;
    const signature = await payer.signTypedData(typed);
    const permit = { permitted, nonce: typed.message.nonce, deadline };
    const { abi } = exactPermit2Proxy;
    return encodeFunctionData({
      abi,
      functionName: 'settle',
      args: [permit, payer.address, witness, signature],
    });
  };

  /** The same of `upto`, where an account may move these atoms: in a batch the contract that makes its calls. */
  const uptoData = async (
    expected: ExpectedTransfer,
    atoms: bigint,
    submitter: Address = multicall3Address,
  ): Promise<Hex> => {
    const typed = uptoTypedData({ ...termsOf(expected), submitter });
    const { permitted, deadline, witness } = typed.message;
    const signature = await payer.signTypedData(typed);
    const permit = { permitted, nonce: typed.message.nonce, deadline };
    const { abi } = uptoPermit2Proxy;
    return encodeFunctionData({
      abi,
      functionName: 'settle',
      args: [permit, atoms, payer.address, witness, signature],
    });
  };

  /** The calldata of the token that uses an EIP-3009 authorization. */
  const authorizationData = async ({ payTo: to, value, nonce }: ExpectedTransfer): Promise<Hex> => {
    const { name, version } = devnetTokens[0];
    const domain = { name, version, chainId: chain.chainId, verifyingContract: token };
    const message = { from: payer.address, to, value, validAfter: 0n, validBefore, nonce };
    const primaryType = 'TransferWithAuthorization';
    const signature = await payer.signTypedData({ domain, types: authorizationTypes, primaryType, message });
    const args = [...Object.values(message), signature];
    return encodeFunctionData({ abi: testToken.abi, functionName: 'transferWithAuthorization', args });
  };

  const batch = (calls: readonly { readonly target: Address; readonly callData: Hex }[]) => {
    const args = [calls.map((call) => ({ ...call, allowFailure: true }))];
    return send(
      multicall3Address,
      encodeFunctionData({ abi: multicall3.abi, functionName: 'aggregate3', args }),
    );
  };

  return {
    url: chain.url,
    token,
    expected: (): ExpectedTransfer => ({
      transferMethod: 'permit2',
      asset: token,
      from: lowerCase(payer.address),
      payTo: devnetAddress('payTo'),
      value: 1_000n,
      nonce: generatePrivateKey(),
    }),
    /** One of at most these atoms, by `upto`. */
    expectedUpto: (most = 1_000n): ExpectedTransfer => ({
      transferMethod: 'upto',
      asset: token,
      from: lowerCase(payer.address),
      payTo: devnetAddress('payTo'),
      value: most,
      nonce: generatePrivateKey(),
    }),
    settleData,
    uptoData,
    authorizationData,
    batch,
    /** Moves these atoms of at most the expected transfer. */
    useUpto: async (expected: ExpectedTransfer, atoms: bigint) =>
      send(uptoProxyAddress, await uptoData(expected, atoms, lowerCase(sender.address))),
    /** Uses a nonce, for the expected transfer or another one. */
    use: async (expected: ExpectedTransfer) => send(exactProxyAddress, await settleData(expected)),
    /** Uses nonces in one transaction, each where that is possible. */
    useAll: async (all: readonly ExpectedTransfer[]) =>
      batch(
        await Promise.all(
          all.map(async (one) => ({ target: exactProxyAddress, callData: await settleData(one) })),
        ),
      ),
    /** Uses a nonce in a transaction whose calldata does not show it. */
    async useHidden(expected: ExpectedTransfer, shown: Hex = '0x') {
      const data = await settleData(expected);
      const client = clientOf(sender);
      const hash = await client.sendTransaction({ data: callerOf(exactProxyAddress, data), chain: null });
      const { contractAddress } = await client.waitForTransactionReceipt({ hash });
      if (!contractAddress) throw new Error('not deployed');
      return send(contractAddress, shown);
    },
    /** Withdraws a nonce, as its payer may. */
    cancel({ nonce }: ExpectedTransfer) {
      const { word, mask } = nonceBit(nonce);
      const args = [word, mask];
      const { abi } = permit2Contract;
      return send(
        permit2Address,
        encodeFunctionData({ abi, functionName: 'invalidateUnorderedNonces', args }),
        payer,
      );
    },
    /** A plain transfer of the payer, with calldata after its arguments. */
    transfer({ payTo, value }: ExpectedTransfer, suffix: Hex = '0x') {
      const data = encodeFunctionData({ abi: testToken.abi, functionName: 'transfer', args: [payTo, value] });
      return send(token, concatHex([data, suffix]), payer);
    },
    /** Has one block for transactions that are sent one after the other. */
    async inOneBlock<T>(acts: readonly (() => Promise<T>)[]): Promise<T[]> {
      await rpc(chain.url, 'evm_setIntervalMining', [0]);
      await rpc(chain.url, 'evm_setAutomine', [false]);
      const sent: Promise<T>[] = [];
      for (const act of acts) {
        sent.push(act());
        // the next one of the same account has the next nonce
        await eventually(async () => expect(await pendingCount()).toBe(sent.length));
      }
      await rpc(chain.url, 'evm_mine', []);
      await rpc(chain.url, 'evm_setAutomine', [true]);
      await rpc(chain.url, 'evm_setIntervalMining', [1]);
      return Promise.all(sent);
    },
    rpc: (method: string, ...params: readonly unknown[]) => rpc(chain.url, method, params),
    stop: () => chain.stop(),
  };

  async function pendingCount(): Promise<number> {
    const { pending } = (await rpc(chain.url, 'txpool_status', [])) as { pending: string };
    return Number(pending);
  }
}

/** The creation code of a contract that makes one call, whose calldata is in its code. */
function callerOf(target: Address, data: Hex): Hex {
  const length = numberToHex(size(data), { size: 2 }).slice(2);
  // CALL(gas, target, 0, 0, length, 0, 0); STOP
  const call: Hex = `0x6000600061${length}6000600073${target.slice(2)}5af100`;
  const copyBytes = 8;
  const at = numberToHex(copyBytes + size(call), { size: 1 }).slice(2);
  // CODECOPY(0, at, length)
  const runtime = concatHex([`0x61${length}60${at}600039`, call, data]);
  // CODECOPY(0, 12, size); RETURN(0, size)
  return concatHex([`0x61${numberToHex(size(runtime), { size: 2 }).slice(2)}80600c6000396000f3`, runtime]);
}

/** A chain as a gateway reads it. */
export function openChain(rpcUrl: string): Chain {
  const chain = createChain({ chainId: 84_532, rpcUrl, timeoutMs: 20_000 });
  onTestFinished(() => chain.close());
  return chain;
}

/** A node that passes everything on to another one; `change` sees each answer. */
export function changingNode(
  url: string,
  change: (request: RpcRequest, result: unknown) => unknown,
): Promise<{ readonly url: string }> {
  return startRpcStub(async (request) => {
    const { method, params } = request.body;
    succeed(request, change(request, await rpc(url, method, params)));
  });
}

/** A node that has the state of its newest block alone. */
export function prunedNode(url: string): Promise<{ readonly url: string }> {
  return startRpcStub(async (request) => {
    const { method, params } = request.body;
    const isOld = method === 'eth_call' && typeof params[1] === 'string' && params[1] !== 'latest';
    if (isOld) return refuse(request, { code: -32_000, message: 'missing trie node' });
    return succeed(request, await rpc(url, method, params));
  });
}

/** The same calldata with a signature that does not hold: its 65 bytes are followed by 31 of padding. */
export function broken(data: Hex): Hex {
  return `0x${data.slice(2, -192)}${'ab'.repeat(32)}${data.slice(-128)}`;
}

/** The indices of the transfers among a transaction's logs. */
export function transfersIn({ logs }: TransactionReceipt): number[] {
  return logs.filter(({ topics }) => topics[0] === transferred).map(({ logIndex }) => logIndex);
}

import { createWalletClient, encodeFunctionData, type Hex, http, parseSignature, publicActions } from 'viem';
import { privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { multicall3Address } from '../../src/devnet/chain.ts';
import { multicall3, testToken } from '../../src/devnet/contracts.ts';
import type { ContractCall } from '../../src/devnet/deploy.ts';
import { payer, type Payment } from './payer.ts';
import { landingCall, type Permit } from './permit2.ts';

const stranger = privateKeyToAccount(devnetKeys.spare);

/** Lands a signed payment without a facilitator, as any account may. Returns its transaction. */
export async function landPayment(rpcUrl: string, payment: Payment): Promise<Hex> {
  const { address, functionName, args } = landingCall(payment);
  return send(rpcUrl, address, functionName, args);
}

/** Cancels an authorization, as its payer may. */
export async function cancelPayment(
  rpcUrl: string,
  payment: Payment,
  account: PrivateKeyAccount = payer,
): Promise<Hex> {
  const { accepted, payload } = payment;
  const nonce = payload.authorization.nonce as Hex;
  const signature = await account.signTypedData({
    domain: {
      name: accepted.extra['name'] ?? '',
      version: accepted.extra['version'] ?? '',
      chainId: Number(accepted.network.split(':')[1]),
      verifyingContract: accepted.asset,
    },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: account.address, nonce },
  });
  const { r, s, yParity } = parseSignature(signature);
  return send(rpcUrl, accepted.asset, 'cancelAuthorization', [account.address, nonce, 27 + yParity, r, s]);
}

/** Sends a plain token transfer. With `gas`, a transfer that reverts is sent as well. */
export function transferToken(
  rpcUrl: string,
  { key, asset, to, amount, gas }: { key: Hex; asset: Hex; to: Hex; amount: bigint; gas?: bigint },
): Promise<Hex> {
  return send(rpcUrl, asset, 'transfer', [to, amount], { account: privateKeyToAccount(key), gas });
}

/** Several transfers in one transaction, from Multicall3's own balance. */
export async function transferMany(
  rpcUrl: string,
  transfers: readonly { readonly asset: Hex; readonly to: Hex; readonly amount: bigint }[],
): Promise<Hex> {
  const calls = transfers.map(({ asset, to, amount }) => ({
    target: asset,
    callData: encodeFunctionData({ abi: testToken.abi, functionName: 'transfer', args: [to, amount] }),
  }));
  return send(rpcUrl, multicall3Address, 'aggregate', [calls], { abi: multicall3.abi });
}

/** Lands a signed payment in a transaction with logs of more than 2 MiB, as any account may. */
export function landInLongTransaction(rpcUrl: string, payment: Payment | Permit): Promise<Hex> {
  return sendInLongTransaction(rpcUrl, landingCall(payment));
}

/**
 * Lands several signed payments in one transaction.
 * @param unused such ones are in its calldata as well, and nothing executes them
 */
export function landTogether(
  rpcUrl: string,
  payments: readonly (Payment | Permit)[],
  unused: readonly (Payment | Permit)[] = [],
): Promise<Hex> {
  const calls = [
    ...payments.map((one) => batched(landingCall(one))),
    ...unused.map((one) => ({ ...batched(landingCall(one)), target: stranger.address })),
  ];
  return send(rpcUrl, multicall3Address, 'aggregate', [calls], { abi: multicall3.abi });
}

function batched({ address, artifact, functionName, args }: ContractCall) {
  return { target: address, callData: encodeFunctionData({ abi: artifact.abi, functionName, args }) };
}

/** A call by Multicall3, whose transaction has logs of more than 2 MiB beside it. */
export async function sendInLongTransaction(rpcUrl: string, call: ContractCall): Promise<Hex> {
  const client = createWalletClient({
    account: stranger,
    transport: http(rpcUrl),
    pollingInterval: 20,
  }).extend(publicActions);
  const { contractAddress } = await client.waitForTransactionReceipt({
    hash: await client.sendTransaction({ data: longLogger, chain: null }),
  });
  const calls = [batched(call), { target: contractAddress, callData: '0x' }];
  return send(rpcUrl, multicall3Address, 'aggregate', [calls], { abi: multicall3.abi });
}

/** Deploys a contract that logs 100 KiB twelve times: `PUSH3 length, PUSH1 0, LOG0`. */
const longLogger: Hex = (() => {
  const runtime = '620190006000a0'.repeat(12) + '00';
  const length = (runtime.length / 2).toString(16).padStart(2, '0');
  return `0x60${length}600c60003960${length}6000f3${runtime}`;
})();

async function send(
  rpcUrl: string,
  address: Hex,
  functionName: string,
  args: readonly unknown[],
  options: { account?: typeof stranger; gas?: bigint | undefined; abi?: typeof testToken.abi } = {},
): Promise<Hex> {
  const { account = stranger, gas, abi = testToken.abi } = options;
  const client = createWalletClient({
    account,
    transport: http(rpcUrl),
    pollingInterval: 20,
  }).extend(publicActions);
  const hash = await client.writeContract({
    address,
    abi,
    functionName,
    args,
    chain: null,
    ...(gas && { gas }),
  });
  const { status } = await client.waitForTransactionReceipt({ hash });
  if (status !== 'success' && gas === undefined) throw new Error(`${functionName} reverted`);
  return hash;
}

import { createWalletClient, http, parseSignature, publicActions, type TransactionReceipt } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { devnetAddress, devnetKeys, lowerCase } from '../../../../src/devnet/accounts.ts';
import { startChain, type Chain } from '../../../../src/devnet/chain.ts';
import { testToken } from '../../../../src/devnet/contracts.ts';
import { deployTokens, devnetTokens } from '../../../../src/devnet/token.ts';
import type { Address, Hex } from '../../../../src/base/values/primitives.ts';
import type { ExpectedTransfer } from '../../../../src/payments/rules/payment.ts';
import { authorizationTypes } from '../../../support/payer.ts';

const payer = privateKeyToAccount(devnetKeys.payer);
const sender = privateKeyToAccount(devnetKeys.spare);
const bytes32 = 'bytes32';

/** Its own chain, where authorizations are used and canceled without a facilitator. */
export interface AuthorizationChain {
  readonly url: string;
  readonly token: Address;
  /** An unused authorization for a payment of the payer to the payee. */
  expected(): ExpectedTransfer;
  /** Uses the nonce, for the expected transfer or another one. */
  use(expected: ExpectedTransfer): Promise<TransactionReceipt>;
  cancel(expected: ExpectedTransfer): Promise<TransactionReceipt>;
  /** Any method of the node. */
  rpc(method: string, ...params: readonly unknown[]): Promise<unknown>;
  stop(): Promise<void>;
}

export async function startAuthorizationChain(): Promise<AuthorizationChain> {
  const chain = await startChain();
  const { token } = await deployTokens(chain);
  const client = clientOf(chain);
  const domain = {
    name: devnetTokens[0].name,
    version: devnetTokens[0].version,
    chainId: chain.chainId,
    verifyingContract: token,
  };
  const contract = { address: token, abi: testToken.abi, chain: null } as const;
  const send = async (functionName: string, args: readonly unknown[]): Promise<TransactionReceipt> => {
    const hash = await client.writeContract({ ...contract, functionName, args });
    return client.waitForTransactionReceipt({ hash });
  };
  return {
    url: chain.url,
    token,
    expected: () => ({
      transferMethod: 'eip3009',
      asset: token,
      from: lowerCase(payer.address),
      payTo: devnetAddress('payTo'),
      value: 1_000n,
      nonce: generatePrivateKey(),
    }),
    async use({ payTo: to, value, nonce }) {
      const message = { from: payer.address, to, value, validAfter: 0n, validBefore: 1n << 64n, nonce };
      const primaryType = 'TransferWithAuthorization';
      const signature = await payer.signTypedData({
        domain,
        types: authorizationTypes,
        primaryType,
        message,
      });
      return send('transferWithAuthorization', [...Object.values(message), signature]);
    },
    async cancel({ nonce }) {
      const types = {
        CancelAuthorization: [
          { name: 'authorizer', type: 'address' },
          { name: 'nonce', type: bytes32 },
        ],
      } as const;
      const message = { authorizer: payer.address, nonce };
      const primaryType = 'CancelAuthorization';
      const { r, s, yParity } = parseSignature(
        await payer.signTypedData({ domain, types, primaryType, message }),
      );
      return send('cancelAuthorization', [payer.address, nonce, 27 + yParity, r, s]);
    },
    rpc: (method, ...params) => rpc(chain.url, method, params),
    stop: () => chain.stop(),
  };
}

/** One call to a node, its error thrown. */
export async function rpc(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const { result, error } = (await response.json()) as { result?: unknown; error?: { message: string } };
  if (error !== undefined) throw new Error(`${method}: ${error.message}`);
  return result;
}

/** The block and position of a transaction, as answers name it. */
export function placeOf({ transactionHash, blockNumber, blockHash }: TransactionReceipt): {
  readonly transaction: Hex;
  readonly blockNumber: bigint;
  readonly blockHash: Hex;
} {
  return { transaction: transactionHash, blockNumber, blockHash };
}

function clientOf({ url }: Chain) {
  const transport = http(url);
  return createWalletClient({ account: sender, transport, pollingInterval: 20 }).extend(publicActions);
}

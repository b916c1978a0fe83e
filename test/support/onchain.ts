import { createWalletClient, type Hex, http, parseSignature, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { testToken } from '../../src/devnet/contracts.ts';
import { payer, type Payment } from './payer.ts';

const stranger = privateKeyToAccount(devnetKeys.spare);

/** Lands a signed payment on the chain without any facilitator, as anybody may. Returns its transaction. */
export async function landPayment(rpcUrl: string, payment: Payment): Promise<Hex> {
  const { from, to, value, validAfter, validBefore, nonce } = payment.payload.authorization;
  const numbers = [BigInt(value), BigInt(validAfter), BigInt(validBefore)];
  return send(rpcUrl, payment.accepted.asset, 'transferWithAuthorization', [
    from,
    to,
    ...numbers,
    nonce,
    payment.payload.signature,
  ]);
}

/** Withdraws an authorization, as its payer may. */
export async function cancelPayment(rpcUrl: string, payment: Payment): Promise<Hex> {
  const { accepted, payload } = payment;
  const nonce = payload.authorization.nonce as Hex;
  const signature = await payer.signTypedData({
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
    message: { authorizer: payer.address, nonce },
  });
  const { r, s, yParity } = parseSignature(signature);
  return send(rpcUrl, accepted.asset, 'cancelAuthorization', [payer.address, nonce, 27 + yParity, r, s]);
}

async function send(
  rpcUrl: string,
  address: Hex,
  functionName: string,
  args: readonly unknown[],
): Promise<Hex> {
  const client = createWalletClient({
    account: stranger,
    transport: http(rpcUrl),
    pollingInterval: 20,
  }).extend(publicActions);
  const hash = await client.writeContract({ address, abi: testToken.abi, functionName, args, chain: null });
  const { status } = await client.waitForTransactionReceipt({ hash });
  if (status !== 'success') throw new Error(`${functionName} reverted`);
  return hash;
}

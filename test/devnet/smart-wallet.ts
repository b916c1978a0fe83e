import { concatHex, createWalletClient, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { smartWallet } from '../../src/devnet/contracts.ts';
import type { Devnet } from '../../src/devnet/devnet.ts';
import { type Address, parseAddress } from '../../src/base/values/primitives.ts';
import { type PaymentCall, signedPayment } from './pay.ts';

/** Deploys a smart wallet and signs a payment with it, in a signature longer than a key's. */
export async function walletPayment(
  devnet: Devnet,
  amountAtoms: bigint,
): Promise<PaymentCall & { wallet: Address }> {
  const owner = privateKeyToAccount(devnetKeys.spare);
  const client = createWalletClient({ account: owner, transport: http(devnet.rpcUrl), pollingInterval: 20 });
  const { abi, bytecode } = smartWallet;
  const hash = await client.deployContract({ abi, bytecode, args: [owner.address], chain: null });
  const { contractAddress } = await client.extend(publicActions).waitForTransactionReceipt({ hash });
  const wallet = parseAddress(contractAddress ?? '');
  if (wallet === undefined) throw new Error('the wallet was not deployed');
  const payment = await signedPayment(devnet.token, amountAtoms, {
    address: wallet,
    signTypedData: async (message) => concatHex([await owner.signTypedData(message), '0x00']),
  });
  return { ...payment, wallet };
}

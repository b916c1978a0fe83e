import { createWalletClient, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import type { ContractArtifact } from '../../src/devnet/contracts.ts';
import { type Address, parseAddress } from '../../src/base/values/primitives.ts';

/** Deploys a contract from an account of the devnet. */
export async function deployContract(
  rpcUrl: string,
  { abi, bytecode }: Pick<ContractArtifact, 'abi' | 'bytecode'>,
  args: unknown[],
): Promise<Address> {
  const account = privateKeyToAccount(devnetKeys.spare);
  const client = createWalletClient({ account, transport: http(rpcUrl), pollingInterval: 20 });
  const hash = await client.deployContract({ abi, bytecode, args, chain: null });
  const { contractAddress } = await client.extend(publicActions).waitForTransactionReceipt({ hash });
  const address = parseAddress(contractAddress ?? '');
  if (address === undefined) throw new Error(`nothing was deployed in ${hash}`);
  return address;
}

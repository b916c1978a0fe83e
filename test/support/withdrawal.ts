import { encodeAbiParameters, encodeFunctionData, type Hex, keccak256 } from 'viem';
import { sign } from 'viem/accounts';
import { prepaidContractArtifact } from '../../src/devnet/contracts.ts';
import { commitmentOf, prepaidContractAddress } from '../../src/devnet/prepaid-contract.ts';
import { readAt } from '../../src/devnet/deploy.ts';
import type { Address } from '../../src/base/values/primitives.ts';

/** Prepaid credits that go back to whom their account's key says. */
export interface Withdrawal {
  readonly key: Hex;
  readonly recipient: Address;
  readonly amount: bigint;
  readonly nonce: bigint;
}

const view = async (url: string, functionName: string): Promise<Hex> =>
  (await readAt(url, {
    address: prepaidContractAddress,
    artifact: prepaidContractArtifact,
    functionName,
    args: [],
  })) as Hex;

export async function signWithdrawal(
  rpcUrl: string,
  { key, recipient, amount, nonce }: Withdrawal,
): Promise<Hex> {
  const typehash = await view(rpcUrl, 'WITHDRAW_TYPEHASH');
  const separator = await view(rpcUrl, 'DOMAIN_SEPARATOR');
  const struct = keccak256(
    encodeAbiParameters(
      [
        { type: 'bytes32' },
        { type: 'bytes32' },
        { type: 'address' },
        { type: 'uint256' },
        { type: 'uint256' },
      ],
      [typehash, commitmentOf(key), recipient, amount, nonce],
    ),
  );
  const hash = keccak256(`0x1901${separator.slice(2)}${struct.slice(2)}`);
  return sign({ hash, privateKey: key, to: 'hex' });
}

/** The call's data; any account may send it. */
export async function withdrawalData(rpcUrl: string, withdrawal: Withdrawal): Promise<Hex> {
  const { key, recipient, amount, nonce } = withdrawal;
  const signature = await signWithdrawal(rpcUrl, withdrawal);
  const args = [commitmentOf(key), recipient, amount, nonce, signature];
  return encodeFunctionData({ abi: prepaidContractArtifact.abi, functionName: 'withdrawCredits', args });
}

import { encodePacked, keccak256 } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { Address, Hex } from '../base/values/primitives.ts';
import { devnetAddress, devnetKeys, lowerCase } from './accounts.ts';
import { prepaidContractArtifact, testToken } from './contracts.ts';
import { callAs, type ChainLocation, deployedAddress, deployOnce, readAt } from './deploy.ts';
import { mint } from './token.ts';

/** After both tokens and the registry. */
const deployerNonce = 3;

/** The address of the prepaid contract on every devnet, deployed or not. */
export const prepaidContractAddress: Address = deployedAddress(deployerNonce);

/** Signs spends of the demo account. It is public: use it on no other chain. */
const spendingPrivateKey: Hex = '0x59e2d1c0f4b8a3967c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b';
const startingCreditAtoms = 1_000n * 10n ** 6n;

/** The accounts and keys to pay this devnet's operator by spends. */
export interface DevnetPrepaid {
  readonly prepaidContract: Address;
  /** The operator of the gateway. */
  readonly operator: Address;
  readonly operatorPrivateKey: Hex;
  /** An account with a thousand of the token, and the key that spends it. */
  readonly commitment: Hex;
  readonly spendingPrivateKey: Hex;
}

/**
 * Deploys the prepaid contract after the registry, and funds one account in it. What a restored chain already has stays
 * unchanged.
 * @throws when another contract has the address, or the deployer's nonces were used otherwise: deploy the registry first
 */
export async function deployPrepaidContract(chain: ChainLocation, token: Address): Promise<DevnetPrepaid> {
  const prepaidContract = await deployOnce(chain, {
    label: 'prepaid contract',
    artifact: prepaidContractArtifact,
    args: [],
    nonce: deployerNonce,
  });
  const commitment = commitmentOf(spendingPrivateKey);
  if (!(await isFunded(chain, prepaidContract, commitment)))
    await fundPrepaidAccount(chain, {
      prepaidContract,
      token,
      spendingPrivateKey,
      amountAtoms: startingCreditAtoms,
    });
  const [operator, operatorPrivateKey] = [devnetAddress('operator'), devnetKeys.operator];
  return { prepaidContract, operator, operatorPrivateKey, commitment, spendingPrivateKey };
}

/** The [spend] table of a gateway's configuration; the operator's key is in a file. */
export function spendTable(
  devnet: { readonly network: string; readonly token: Address },
  { prepaidContract }: DevnetPrepaid,
  operatorKeyFile: string,
): string {
  return `
# Chat can be paid by signed spends of the devnet's prepaid contract.
[spend]
network = "${devnet.network}"
contract = "${prepaidContract}"
token = "${devnet.token}"
operator_key = ${JSON.stringify(`file:${operatorKeyFile}`)}
service_id = 1
min_charge = "1000"
max_spend = "50000000"
atoms_per_unit = "1000000"
atoms_per_native_unit = "1000" # the devnet's ether is worth nothing
`;
}

/** The name of the account that a key spends: that of the key and a salt, which is zero here. */
export function commitmentOf(spendingKey: Hex): Hex {
  const salt: Hex = `0x${'0'.repeat(64)}`;
  return keccak256(encodePacked(['address', 'bytes32'], [privateKeyToAddress(spendingKey), salt]));
}

async function isFunded(chain: ChainLocation, address: Address, commitment: Hex): Promise<boolean> {
  const call = { address, artifact: prepaidContractArtifact, functionName: 'getAccount', args: [commitment] };
  const account = await readAt(chain.url, call);
  return (
    typeof account === 'object' && account !== null && 'totalFunded' in account && account.totalFunded !== 0n
  );
}

/** Gives an account new atoms of a devnet token; opens it if there is none. Safe to call concurrently. */
export async function fundPrepaidAccount(
  chain: ChainLocation,
  funding: {
    readonly prepaidContract: Address;
    readonly token: Address;
    /** Of the account that gets it. */
    readonly spendingPrivateKey: Hex;
    readonly amountAtoms: bigint;
  },
): Promise<void> {
  const { prepaidContract, token, spendingPrivateKey: key, amountAtoms } = funding;
  const funder = generatePrivateKey();
  await mint(chain, token, lowerCase(privateKeyToAddress(funder)), amountAtoms);
  await callAs(chain, funder, {
    address: token,
    artifact: testToken,
    functionName: 'approve',
    args: [prepaidContract, amountAtoms],
  });
  await callAs(chain, funder, {
    address: prepaidContract,
    artifact: prepaidContractArtifact,
    functionName: 'fundCredits',
    args: [token, amountAtoms, commitmentOf(key), privateKeyToAddress(key)],
  });
}

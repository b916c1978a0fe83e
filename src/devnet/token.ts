import type { PrivateKeyAccount } from 'viem/accounts';
import type { Address, Hex } from '../base/values/primitives.ts';
import { devnetAddress } from './accounts.ts';
import { permit2Address } from '../payments/rules/schemes/permit2/signature-transfer.ts';
import { type ContractArtifact, plainToken, testToken } from './contracts.ts';
import { callAs, callAsAnyone, type ChainLocation, deployOnce, notOurs, readAt } from './deploy.ts';

/** A token's constructor arguments, which are also its EIP-712 domain. */
export interface TokenIdentity {
  readonly name: string;
  readonly symbol: string;
  readonly version: string;
  readonly decimals: number;
}

/** The devnet's tokens, in the order of their deployment. */
export const devnetTokens = [
  { name: 'USD Coin', symbol: 'USDC', version: '2', decimals: 6 },
  { name: 'Euro Coin', symbol: 'EURC', version: '2', decimals: 6 },
] as const satisfies readonly TokenIdentity[];

/** The devnet's token without EIP-3009, which is paid with by Permit2. */
const devnetPlainToken: TokenIdentity = {
  name: 'Plain Dollar',
  symbol: 'PUSD',
  version: '1',
  decimals: 6,
};
/** After the anchor of checkpoints. */
const plainTokenNonce = 5;

const startingBalanceAtoms = 1_000_000n * 10n ** 6n;
const holders = ['payer', 'permittedCaller', 'refusedCaller'] as const;

/**
 * Deploys both tokens, each at the address that follows from the deployer and its nonce 0 or 1, and gives the
 * payer and both callers a million of each. Contracts that a restored chain already has stay unchanged.
 * @returns lower-case addresses
 * @throws when another contract has a token's address, or the deployer's nonces were used otherwise
 */
export async function deployTokens(chain: ChainLocation): Promise<{ token: Address; secondToken: Address }> {
  // One after the other: the nonce decides the address.
  const token = await deployToken(chain, devnetTokens[0], 0);
  const secondToken = await deployToken(chain, devnetTokens[1], 1);
  for (const asset of [token, secondToken]) await endow(chain, asset);
  return { token, secondToken };
}

/**
 * Deploys the token without EIP-3009 and gives the payer and both callers a million of it.
 * @returns its lower-case address
 * @throws when another contract has the address, or the deployer's nonces were used otherwise: deploy the anchor of checkpoints first
 */
export async function deployPlainToken(chain: ChainLocation): Promise<Address> {
  const asset = await deployToken(chain, devnetPlainToken, plainTokenNonce, plainToken);
  await endow(chain, asset);
  return asset;
}

/** Lets Permit2 move a token of an account, as each payer by Permit2 does once. Unlimited, so that it is done. */
export async function approvePermit2(
  chain: ChainLocation,
  token: Address,
  owner: Hex | PrivateKeyAccount,
): Promise<void> {
  const args = [permit2Address, 2n ** 256n - 1n];
  await callAs(chain, owner, { address: token, artifact: plainToken, functionName: 'approve', args });
}

async function deployToken(
  chain: ChainLocation,
  identity: TokenIdentity,
  nonce: number,
  artifact: ContractArtifact = testToken,
): Promise<Address> {
  const { name, symbol, version, decimals } = identity;
  const args = [name, symbol, version, decimals];
  const address = await deployOnce(chain, { label: symbol, artifact, args, nonce });
  if (!(await hasIdentity(chain.url, address, identity))) throw notOurs(address, symbol);
  return address;
}

async function hasIdentity(rpcUrl: string, address: Address, identity: TokenIdentity): Promise<boolean> {
  for (const [functionName, expected] of Object.entries(identity)) {
    const found = await readAt(rpcUrl, { address, artifact: testToken, functionName, args: [] });
    if (found !== expected) return false;
  }
  return true;
}

async function endow(chain: ChainLocation, asset: Address): Promise<void> {
  for (const role of holders) {
    const holder = devnetAddress(role);
    if ((await balanceOf(chain.url, asset, holder)) === 0n)
      await mint(chain, asset, holder, startingBalanceAtoms);
  }
}

/** The balance of an address, in atoms, at the latest block. */
export async function balanceOf(rpcUrl: string, token: Address, holder: Address): Promise<bigint> {
  const balance = await readAt(rpcUrl, {
    address: token,
    artifact: testToken,
    functionName: 'balanceOf',
    args: [holder],
  });
  if (typeof balance !== 'bigint') throw new TypeError(`balanceOf of ${token} is not a number`);
  return balance;
}

/** Creates atoms of a devnet token out of nothing; resolves when they are there. Safe to call concurrently. */
export function mint(chain: ChainLocation, token: Address, to: Address, amountAtoms: bigint): Promise<void> {
  const args = [to, amountAtoms];
  return callAsAnyone(chain, { address: token, artifact: testToken, functionName: 'mint', args });
}

/** Sends atoms of a devnet token from an account; returns the transaction's hash once it is in a block. */
export function transfer(
  chain: ChainLocation,
  token: Address,
  fromKey: Hex,
  { to, amountAtoms }: { readonly to: Address; readonly amountAtoms: bigint },
): Promise<Hex> {
  const args = [to, amountAtoms];
  return callAs(chain, fromKey, { address: token, artifact: testToken, functionName: 'transfer', args });
}

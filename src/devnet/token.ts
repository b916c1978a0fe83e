import {
  type Client,
  createPublicClient,
  createTestClient,
  createWalletClient,
  defineChain,
  getContractAddress,
  http,
  publicActions,
} from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { deployContract, getCode, getTransactionCount, readContract } from 'viem/actions';
import type { Address, Hex } from '../domain/primitives.ts';
import { devnetAddress, devnetKeys, lowerCase } from './accounts.ts';
import { testToken } from './contracts.ts';

/** What the helpers need to know of a chain. */
export interface ChainLocation {
  readonly url: string;
  readonly chainId: number;
}

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

const startingBalanceAtoms = 1_000_000n * 10n ** 6n;
const holders = ['payer', 'permittedCaller', 'refusedCaller'] as const;
const pollingIntervalMs = 20;

/**
 * Deploys both tokens, each at the address that follows from the deployer and its nonce 0 or 1, and gives the
 * payer and both callers a million of each. What a restored chain already has is left as it is.
 * @returns lower-case addresses
 * @throws when something else stands at a token's address, or the deployer's nonces were spent otherwise
 */
export async function deployTokens(chain: ChainLocation): Promise<{ token: Address; secondToken: Address }> {
  // One after the other: the nonce decides the address.
  const token = await deployOnce(chain, devnetTokens[0], 0);
  const secondToken = await deployOnce(chain, devnetTokens[1], 1);
  for (const asset of [token, secondToken]) await endow(chain, asset);
  return { token, secondToken };
}

/** The token's address on every devnet, deployed or not. */
function expectedAddress(nonce: number): Address {
  return lowerCase(getContractAddress({ from: devnetAddress('deployer'), nonce: BigInt(nonce) }));
}

async function deployOnce(chain: ChainLocation, identity: TokenIdentity, nonce: number): Promise<Address> {
  const client = walletOn(chain, devnetKeys.deployer);
  const address = expectedAddress(nonce);
  if ((await getCode(client, { address })) === undefined) {
    await requireNonce(client, nonce);
    const { name, symbol, version, decimals } = identity;
    const args = [name, symbol, version, decimals];
    const hash = await deployContract(client, {
      abi: testToken.abi,
      bytecode: testToken.bytecode,
      args,
      nonce,
    });
    await client.waitForTransactionReceipt({ hash });
  }
  await requireOurs(client, address, identity);
  return address;
}

async function requireNonce(client: Client, nonce: number): Promise<void> {
  const next = await getTransactionCount(client, { address: devnetAddress('deployer') });
  if (next === nonce) return;
  throw new Error(
    `The deployer's next nonce is ${next} instead of ${nonce}: this chain was not set up by the devnet`,
  );
}

async function requireOurs(client: Client, address: Address, identity: TokenIdentity): Promise<void> {
  const code = await getCode(client, { address });
  const isOurCode = code === testToken.deployedBytecode;
  if (isOurCode && (await hasIdentity(client, address, identity))) return;
  throw new Error(
    `What stands at ${address} is not this devnet's ${identity.symbol}: begin with a fresh chain`,
  );
}

async function hasIdentity(client: Client, address: Address, identity: TokenIdentity): Promise<boolean> {
  for (const [functionName, expected] of Object.entries(identity)) {
    const found = await readContract(client, { address, abi: testToken.abi, functionName });
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

/** What an address holds of a token, in atoms, as of the latest block. */
export async function balanceOf(rpcUrl: string, token: Address, holder: Address): Promise<bigint> {
  const client = createPublicClient({ transport: http(rpcUrl) });
  const args = [holder];
  const balance = await client.readContract({
    address: token,
    abi: testToken.abi,
    functionName: 'balanceOf',
    args,
  });
  if (typeof balance !== 'bigint') throw new TypeError(`balanceOf of ${token} is no number`);
  return balance;
}

/**
 * Creates atoms of a devnet token out of nothing; resolves when they are there.
 * Anyone may mint, so each call sends from an account of its own: callers at once never meet in a nonce.
 */
export async function mint(
  chain: ChainLocation,
  token: Address,
  to: Address,
  amountAtoms: bigint,
): Promise<void> {
  const client = walletOn(chain, generatePrivateKey());
  const funds = createTestClient({ mode: 'anvil', transport: http(chain.url) });
  await funds.setBalance({ address: client.account.address, value: 10n ** 18n });
  const call = { address: token, abi: testToken.abi, functionName: 'mint', args: [to, amountAtoms] };
  const hash = await client.writeContract(call);
  const { status } = await client.waitForTransactionReceipt({ hash });
  if (status !== 'success') throw new Error(`minting ${amountAtoms} of ${token} reverted in ${hash}`);
}

function walletOn({ url, chainId }: ChainLocation, privateKey: Hex) {
  const chain = defineChain({
    id: chainId,
    name: 'devnet',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  });
  const account = privateKeyToAccount(privateKey);
  return createWalletClient({
    account,
    chain,
    transport: http(url),
    pollingInterval: pollingIntervalMs,
  }).extend(publicActions);
}

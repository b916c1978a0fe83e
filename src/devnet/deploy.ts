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
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { deployContract, getCode, getTransactionCount } from 'viem/actions';
import type { Address, Hex } from '../base/values/primitives.ts';
import { devnetAddress, devnetKeys, lowerCase } from './accounts.ts';
import type { ContractArtifact } from './contracts.ts';

/** What the helpers need to know of a chain. */
export interface ChainLocation {
  readonly url: string;
  readonly chainId: number;
}

/** A contract of the devnet's setup. */
export interface Deployment {
  /** The contract's name in messages. */
  readonly label: string;
  readonly artifact: ContractArtifact;
  readonly args: readonly unknown[];
  /** The deployer's, which decides the address. */
  readonly nonce: number;
}

/** A call to a contract of the devnet that any account may make. */
export interface ContractCall {
  readonly address: Address;
  readonly artifact: ContractArtifact;
  readonly functionName: string;
  readonly args: readonly unknown[];
}

const pollingIntervalMs = 20;

/** Where the deployer's transaction with this nonce puts a contract on every devnet, deployed or not. */
export function deployedAddress(nonce: number): Address {
  return lowerCase(getContractAddress({ from: devnetAddress('deployer'), nonce: BigInt(nonce) }));
}

/**
 * Deploys a contract, unless a restored chain already has it.
 * @returns its lower-case address
 * @throws when another contract has the address, or the deployer's nonces were used otherwise
 */
export async function deployOnce(chain: ChainLocation, deployment: Deployment): Promise<Address> {
  const client = walletOn(chain, devnetKeys.deployer);
  const address = deployedAddress(deployment.nonce);
  if ((await getCode(client, { address })) === undefined) {
    await requireNonce(client, deployment.nonce);
    const { artifact, args, nonce } = deployment;
    const { abi, bytecode } = artifact;
    const hash = await deployContract(client, { abi, bytecode, args, nonce });
    await client.waitForTransactionReceipt({ hash });
  }
  if ((await getCode(client, { address })) === deployment.artifact.deployedBytecode) return address;
  throw notOurs(address, deployment.label);
}

/** The error for an address of the devnet that has another contract. */
export function notOurs(address: Address, label: string): Error {
  return new Error(`The contract at ${address} is not this devnet's ${label}: start with a fresh chain`);
}

async function requireNonce(client: Client, nonce: number): Promise<void> {
  const next = await getTransactionCount(client, { address: devnetAddress('deployer') });
  if (next === nonce) return;
  throw new Error(
    `The deployer's next nonce is ${next} instead of ${nonce}: this chain was not set up by the devnet`,
  );
}

/**
 * Makes a call that any account may make; resolves when it is in a block.
 * Each one sends from a separate account: simultaneous callers never use the same nonce.
 * @throws when it reverts
 */
export async function callAsAnyone(chain: ChainLocation, call: ContractCall): Promise<void> {
  await callAs(chain, generatePrivateKey(), call);
}

/** The same from an account whose sender matters; it is given the ether that it takes. Returns the transaction's hash. */
export async function callAs(
  chain: ChainLocation,
  sender: Hex | PrivateKeyAccount,
  call: ContractCall,
): Promise<Hex> {
  const client = walletOn(chain, sender);
  const funds = createTestClient({ mode: 'anvil', transport: http(chain.url) });
  await funds.setBalance({ address: client.account.address, value: 10n ** 18n });
  const { address, artifact, functionName, args } = call;
  const hash = await client.writeContract({ address, abi: artifact.abi, functionName, args });
  const { status } = await client.waitForTransactionReceipt({ hash });
  if (status !== 'success') throw new Error(`${functionName}(${args.join(', ')}) reverted in ${hash}`);
  return hash;
}

/** Reads a contract at the latest block. */
export function readAt(rpcUrl: string, call: ContractCall): Promise<unknown> {
  const { address, artifact, functionName, args } = call;
  const client = createPublicClient({ transport: http(rpcUrl) });
  return client.readContract({ address, abi: artifact.abi, functionName, args });
}

function walletOn({ url, chainId }: ChainLocation, sender: Hex | PrivateKeyAccount) {
  const chain = defineChain({
    id: chainId,
    name: 'devnet',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  });
  const account = typeof sender === 'string' ? privateKeyToAccount(sender) : sender;
  return createWalletClient({
    account,
    chain,
    transport: http(url),
    pollingInterval: pollingIntervalMs,
  }).extend(publicActions);
}

import { type Abi, type Hex, isHex, parseAbi } from 'viem';

import artifacts from './contracts/artifacts.json' with { type: 'json' };

/** A compiled contract of the devnet, from src/devnet/contracts. */
export interface ContractArtifact {
  readonly abi: Abi;
  /** What a deployment sends, before the encoded constructor arguments. */
  readonly bytecode: Hex;
  /** The code at the address after a deployment. */
  readonly deployedBytecode: Hex;
}

/** An EIP-3009 stablecoin that any account may mint: `constructor(name, symbol, version, decimals)`. */
export const testToken = artifact('TestToken');
/** An ERC-1271 wallet: `constructor(owner)`. */
export const smartWallet = artifact('SmartWallet');
/** Deploys ERC-1271 wallets at addresses known before: no constructor arguments. */
export const walletFactory = artifact('WalletFactory');
/** An ERC-1271 wallet that burns all gas instead of answering: no constructor arguments. */
export const gasBurner = artifact('GasBurner');
/** Permits callers for services: `constructor(serviceId, callers)`. */
export const callerRegistry = artifact('CallerRegistry');
/** Prepaid accounts that are spent by signature: no constructor arguments. */
export const prepaidContractArtifact = artifact('ShieldedCredits');
/** Keeps the newest head of every log: no constructor arguments. */
export const checkpointAnchor = artifact('CheckpointAnchor');
/** What reads go through on real chains; its code is set at `multicall3Address`. */
export const multicall3 = artifact('Multicall3');

/** Moves tokens by signature, as Permit2 does; its code is set at `permit2Address`. */
export const permit2Contract = artifact('Permit2');
/** What pays in scheme `exact` over Permit2; its code is set at `exactProxyAddress`. */
export const exactPermit2Proxy = artifact('ExactPermit2Proxy');
/** The same for the scheme `upto`; its code is set at `uptoProxyAddress`. */
export const uptoPermit2Proxy = artifact('UptoPermit2Proxy');
/** ERC-20 with EIP-2612 and without EIP-3009: `constructor(name, symbol, version, decimals)`. Any account may mint. */
export const plainToken = artifact('PlainToken');

function artifact(name: keyof typeof artifacts): ContractArtifact {
  const { abi, bytecode, deployedBytecode } = artifacts[name];
  return {
    abi: parseAbi(abi),
    bytecode: code(name, bytecode),
    deployedBytecode: code(name, deployedBytecode),
  };
}

function code(name: string, text: string): Hex {
  if (!isHex(text) || text === '0x') throw new Error(`${name} has no bytecode`);
  return text;
}

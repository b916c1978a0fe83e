import type { AcceptedToken } from '../values/token.ts';
import type { Address, Caip2 } from '../values/primitives.ts';

/** A token on a chain, as the key `preset` of `[[accepted_tokens]]` names it. */
export interface TokenPreset extends Pick<
  AcceptedToken,
  'network' | 'asset' | 'symbol' | 'decimals' | 'eip712Name' | 'eip712Version'
> {
  readonly peg: 'USD';
}

/** Who settles payments for anyone. */
export interface FacilitatorPreset {
  readonly url: string;
  /** What its operator gives: nothing, or a key that signs each request. */
  readonly key: 'none' | 'signs';
}

export interface NetworkPreset {
  /** For people. */
  readonly name: string;
  readonly isTest: boolean;
  /** The preset of its dollar. */
  readonly token: keyof typeof tokenPresets;
  /** The facilitators that settle there, the first unless the operator names another. */
  readonly facilitators: readonly [keyof typeof facilitatorPresets, ...(keyof typeof facilitatorPresets)[]];
}

/**
 * Circle's dollars. Addresses: Circle's page "USDC Contract Addresses". EIP-712 names and versions: the package @x402/evm 2.27.0,
 * November 2026, with which a test compares this table. The gateway asks each contract again when it starts.
 */
export const tokenPresets = {
  'base-sepolia/USDC': usdc('eip155:84532', '0x036CbD53842c5426634e7929541eC2318f3dCF7e', 'USDC'),
  'base/USDC': usdc('eip155:8453', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'),
  'polygon/USDC': usdc('eip155:137', '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359'),
  'arbitrum/USDC': usdc('eip155:42161', '0xaf88d065e77c8cC2239327C5EDb3A432268e5831'),
  'avalanche/USDC': usdc('eip155:43114', '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E'),
} as const satisfies Readonly<Record<string, TokenPreset>>;

export type TokenPresetName = keyof typeof tokenPresets;

/**
 * `x402.org`: the default of the package @x402/core 2.27.0, for test networks. `payai`: docs.payai.network, "Supported Networks".
 * `cdp`: docs.cdp.coinbase.com, "Network Support", with a key of its portal. All read in November 2026.
 */
export const facilitatorPresets = {
  'x402.org': { url: 'https://x402.org/facilitator', key: 'none' },
  payai: { url: 'https://facilitator.payai.network', key: 'none' },
  cdp: { url: 'https://api.cdp.coinbase.com/platform/v2/x402', key: 'signs' },
} as const satisfies Readonly<Record<string, FacilitatorPreset>>;

/** The networks that commands know by a name; a configuration may name any chain. */
export const networkPresets = {
  'base-sepolia': {
    name: 'Base Sepolia, a test network',
    isTest: true,
    token: 'base-sepolia/USDC',
    facilitators: ['x402.org', 'payai', 'cdp'],
  },
  base: { name: 'Base', isTest: false, token: 'base/USDC', facilitators: ['payai', 'cdp'] },
  polygon: { name: 'Polygon', isTest: false, token: 'polygon/USDC', facilitators: ['payai', 'cdp'] },
  arbitrum: { name: 'Arbitrum One', isTest: false, token: 'arbitrum/USDC', facilitators: ['payai', 'cdp'] },
  avalanche: {
    name: 'Avalanche C-Chain',
    isTest: false,
    token: 'avalanche/USDC',
    facilitators: ['payai'],
  },
} as const satisfies Readonly<Record<string, NetworkPreset>>;

export type NetworkName = keyof typeof networkPresets;

function usdc(network: Caip2, asset: string, eip712Name = 'USD Coin'): TokenPreset {
  return {
    network,
    asset: asset.toLowerCase() as Address,
    symbol: 'USDC',
    decimals: 6,
    peg: 'USD',
    eip712Name,
    eip712Version: '2',
  };
}

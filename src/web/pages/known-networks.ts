import { isLoopback } from '../../base/config/hosts.ts';
import { html, type Html } from '../../base/values/html.ts';
import type { Caip2 } from '../../base/values/primitives.ts';

/** A network as `wallet_addEthereumChain` takes it (EIP-3085), without its chain id. */
export interface WalletNetwork {
  readonly chainName: string;
  readonly rpcUrls: readonly string[];
  readonly nativeCurrency: { readonly name: string; readonly symbol: string; readonly decimals: number };
  /** Wallets refuse an empty list. */
  readonly blockExplorerUrls?: readonly string[];
}

/** The networks of the configuration, with their RPC. */
export type ConfiguredNetworks = ReadonlyMap<Caip2, { readonly rpcUrl: string }>;

/** By CAIP-2 name. */
export type WalletNetworks = Readonly<Record<string, WalletNetwork>>;

/** viem knows many more, but its list takes a second to load and 50 MB. A test compares these with it. */
export const knownNetworks: WalletNetworks = {
  'eip155:1': known('Ethereum', 'https://ethereum.reth.rs/rpc', 'Ether ETH', 'https://etherscan.io'),
  'eip155:10': known(
    'OP Mainnet',
    'https://mainnet.optimism.io',
    'Ether ETH',
    'https://optimistic.etherscan.io',
  ),
  'eip155:137': known('Polygon', 'https://polygon.drpc.org', 'POL POL', 'https://polygonscan.com'),
  'eip155:8453': known('Base', 'https://mainnet.base.org', 'Ether ETH', 'https://basescan.org'),
  'eip155:42161': known('Arbitrum One', 'https://arb1.arbitrum.io/rpc', 'Ether ETH', 'https://arbiscan.io'),
  'eip155:43113': known(
    'Avalanche Fuji',
    'https://api.avax-test.network/ext/bc/C/rpc',
    'Avalanche Fuji AVAX',
    'https://testnet.snowtrace.io',
  ),
  'eip155:43114': known(
    'Avalanche',
    'https://api.avax.network/ext/bc/C/rpc',
    'Avalanche AVAX',
    'https://snowtrace.io',
  ),
  'eip155:80002': known(
    'Polygon Amoy',
    'https://polygon-amoy.drpc.org',
    'POL POL',
    'https://amoy.polygonscan.com',
  ),
  'eip155:84532': known(
    'Base Sepolia',
    'https://sepolia.base.org',
    'Sepolia Ether ETH',
    'https://sepolia.basescan.org',
  ),
  'eip155:11155111': known(
    'Sepolia',
    'https://11155111.rpc.thirdweb.com',
    'Sepolia Ether ETH',
    'https://sepolia.etherscan.io',
  ),
};

function known(chainName: string, rpcUrl: string, currency: string, explorer: string): WalletNetwork {
  const [, name = '', symbol = ''] = /^(.+) (\w+)$/.exec(currency) ?? [];
  return {
    chainName,
    rpcUrls: [rpcUrl],
    nativeCurrency: { name, symbol, decimals: 18 },
    blockExplorerUrls: [explorer],
  };
}

/**
 * What a wallet may get about the networks of payments. The operator's RPC may hold a secret, so a wallet gets the public one; a
 * chain on this machine has no other, and may have the id of a public chain.
 */
export function walletNetworks(configured: ConfiguredNetworks): WalletNetworks {
  const told = [...configured].flatMap(([id, { rpcUrl }]): [string, WalletNetwork][] => {
    const { hostname } = new URL(rpcUrl);
    if (isLoopback(hostname.replaceAll(/[[\]]/g, ''))) return [[id, localNetwork(id, rpcUrl)]];
    const network = knownNetworks[id];
    return network ? [[id, network]] : [];
  });
  return Object.fromEntries(told);
}

function localNetwork(id: Caip2, rpcUrl: string): WalletNetwork {
  const nativeCurrency = { name: 'Ether', symbol: 'ETH', decimals: 18 };
  const chainName = `Local chain ${id.slice('eip155:'.length)}`;
  return { chainName, rpcUrls: [rpcUrl], nativeCurrency };
}

/** A chain by the name that people know it by; one that has none here, by its number. */
export function networkText(network: string, configured: ConfiguredNetworks = new Map()): string {
  const { chainName = knownNetworks[network]?.chainName } = walletNetworks(configured)[network] ?? {};
  return chainName ?? network.replace(/^eip155:/, 'Chain ');
}

/** The same; its identifier, as programs know it, on hover. */
export function networkName(network: string, configured?: ConfiguredNetworks): Html {
  return html`<span title="${network}">${networkText(network, configured)}</span>`;
}

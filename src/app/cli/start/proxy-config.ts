import { chmod, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Address } from '../../../base/values/primitives.ts';
import { keepSecret, secretAt } from './development-config.ts';

/** A chain, its dollar token, and who settles on it. */
export interface ProxyNetwork {
  /** For people. */
  readonly name: string;
  readonly id: string;
  readonly rpcUrl: string;
  readonly token: { readonly asset: string; readonly symbol: string; readonly eip712Name: string };
  /** Undefined where the operator must name one: real money goes through it. */
  readonly facilitatorUrl: string | undefined;
}

/**
 * The networks that `tollbook proxy` knows. Token addresses: Circle's page "USDC on EVM networks", names of their EIP-712 domains: the
 * contracts' own `name()`, version 2, November 2026. The facilitator of the test network is the public one of the x402 project.
 */
export const proxyNetworks: Readonly<Record<string, ProxyNetwork>> = {
  'base-sepolia': {
    name: 'Base Sepolia, a test network',
    id: 'eip155:84532',
    rpcUrl: 'public',
    token: { asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', symbol: 'USDC', eip712Name: 'USDC' },
    facilitatorUrl: 'https://x402.org/facilitator',
  },
  base: {
    name: 'Base, a main network',
    id: 'eip155:8453',
    rpcUrl: 'public',
    token: { asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', symbol: 'USDC', eip712Name: 'USD Coin' },
    facilitatorUrl: undefined,
  },
};

export interface ProxyRoute {
  readonly methods: readonly string[];
  readonly path: string;
  /** As `0.01 USD`. */
  readonly price: string;
}

export interface ProxyWishes {
  readonly to: string;
  readonly routes: readonly ProxyRoute[];
  readonly payTo: Address;
  readonly network: ProxyNetwork;
  readonly facilitatorUrl: string;
  readonly gatewayPort: string;
  readonly port: string;
}

const files = { receipt: 'receipt.key', quote: 'quote.key' } as const;

/** Writes the configuration of a proxy, and its secrets where there are none yet; returns the file, which `serve` takes as well. */
export async function writeProxyConfig(dir: string, wishes: ProxyWishes): Promise<string> {
  for (const file of Object.values(files)) await keepSecret(dir, file);
  const file = path.join(dir, 'proxy.toml');
  await writeFile(file, proxyConfig(dir, wishes), { mode: 0o600 });
  await chmod(file, 0o600);
  return file;
}

/** @param dir where the secrets are */
function proxyConfig(dir: string, wishes: ProxyWishes): string {
  const { to, routes, payTo, network, facilitatorUrl, gatewayPort, port } = wishes;
  const { asset, symbol, eip712Name } = network.token;
  const text = JSON.stringify;
  return `# Written by \`tollbook proxy\`, which writes it anew at each start. To change it, copy it: \`tollbook serve --config FILE\`.
bind_address = "127.0.0.1:${gatewayPort}"
facilitator_url = ${text(facilitatorUrl)}
receipt_key = ${secretAt(dir, files.receipt)}
quote_key = ${secretAt(dir, files.quote)}

[[accepted_tokens]]
network = "${network.id}"
asset = "${asset}"
symbol = "${symbol}"
decimals = 6
pay_to = "${payTo}"
peg = "USD"
eip712_name = ${text(eip712Name)}
eip712_version = "2"

[[networks]]
id = "${network.id}"
rpc_url = ${text(network.rpcUrl)}

[route_listener]
bind_address = "127.0.0.1:${port}"
${routes.map((route, index) => routeTable(route, index, to)).join('')}`;
}

function routeTable({ methods, path: pattern, price }: ProxyRoute, index: number, to: string): string {
  return `
[[routes]]
service_id = 1
job_index = ${index}
methods = ${JSON.stringify(methods)}
path = ${JSON.stringify(pattern)}
upstream = ${JSON.stringify(to)}
price = ${JSON.stringify(price)}
`;
}

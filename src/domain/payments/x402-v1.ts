import type { Caip2 } from '../values/primitives.ts';
import type { SettlementOption } from './quote.ts';

/** The network names of x402 version 1, which knows no others. */
const chainIds = new Map(
  Object.entries({
    base: 8453,
    'base-sepolia': 84532,
    avalanche: 43114,
    'avalanche-fuji': 43113,
    polygon: 137,
    'polygon-amoy': 80002,
    sei: 1329,
    'sei-testnet': 1328,
    iotex: 4689,
    abstract: 2741,
    'abstract-testnet': 11124,
    peaq: 3338,
    story: 1514,
    educhain: 41923,
    celo: 42220,
    monad: 143,
  }),
);
const names = new Map([...chainIds].map(([name, chainId]): [Caip2, string] => [`eip155:${chainId}`, name]));

/** The CAIP-2 name of a version 1 network; undefined for a name that version 1 does not know. */
export function networkOfV1(name: string): Caip2 | undefined {
  const chainId = chainIds.get(name);
  return chainId === undefined ? undefined : `eip155:${chainId}`;
}

/** The version 1 name of a network; undefined where it has none, so that version 1 clients cannot pay there. */
export function v1NameOf(network: Caip2): string | undefined {
  return names.get(network);
}

/** The resource that an offer is for. */
export interface OfferedResource {
  readonly url: string;
  readonly description: string;
  readonly mimeType: string;
}

/**
 * What version 1 clients are offered: one token a network, since their payments name no asset, and only on networks that
 * have a version 1 name.
 */
export function requirementsV1(
  options: readonly SettlementOption[],
  resource: OfferedResource,
  maxTimeoutSecs: number,
) {
  const firsts = options.filter(
    ({ network }, index) => index === options.findIndex((option) => option.network === network),
  );
  return firsts.flatMap((option) => {
    const network = v1NameOf(option.network);
    if (network === undefined) return [];
    return {
      scheme: 'exact',
      network,
      maxAmountRequired: String(option.amount),
      asset: option.asset,
      payTo: option.payTo,
      resource: resource.url,
      description: resource.description,
      mimeType: resource.mimeType,
      maxTimeoutSeconds: maxTimeoutSecs,
      extra: { name: option.eip712Name, version: option.eip712Version },
    };
  });
}

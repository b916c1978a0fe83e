import type { Caip2 } from '../../base/values/primitives.ts';
import type { SettlementOption } from './quote.ts';
import { schemes } from './schemes/schemes.ts';

/** The networks that the official packages of x402 version 1 name. */
const chainIds = new Map(
  Object.entries({
    ethereum: 1,
    sepolia: 11155111,
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
    'skale-base-sepolia': 324705682,
    megaeth: 4326,
    stable: 988,
    'stable-testnet': 2201,
    flare: 14,
  }),
);
const names = new Map([...chainIds].map(([name, chainId]): [Caip2, string] => [`eip155:${chainId}`, name]));

/** The CAIP-2 name of a version 1 network; undefined for a name that version 1 does not know. */
export function networkOfV1(name: string): Caip2 | undefined {
  const chainId = chainIds.get(name);
  return chainId === undefined ? undefined : `eip155:${chainId}`;
}

/** The version 1 name of a network; undefined if it has no such name, so that version 1 clients cannot pay there. */
export function v1NameOf(network: Caip2): string | undefined {
  return names.get(network);
}

/** The resource that an offer is for. */
export interface OfferedResource {
  readonly url: string;
  readonly description: string;
  readonly mimeType: string;
}

/** The options or tokens that a version 1 client can pay: on networks that have a version 1 name, with schemes that version 1 has. */
export function payableInV1<T extends Omit<SettlementOption, 'amount' | 'creditMicros'>>(
  options: readonly T[],
): T[] {
  return options.filter(
    (option) =>
      v1NameOf(option.network) !== undefined &&
      schemes[option.transferMethod].offerExtraV1(option) !== undefined,
  );
}

/** The options that version 1 clients are offered: of those that they can pay one a network, since their payments name no asset. */
function optionsForV1(options: readonly SettlementOption[]): SettlementOption[] {
  const payable = payableInV1(options);
  return payable.filter(
    ({ network }, index) => index === payable.findIndex((option) => option.network === network),
  );
}

/**
 * The offers to version 1 clients.
 * @param outputSchema what a job takes and gives, in discovery
 */
export function requirementsV1(
  options: readonly SettlementOption[],
  resource: OfferedResource,
  maxTimeoutSecs: number,
  outputSchema?: object,
) {
  return optionsForV1(options).map((option) => {
    const scheme = schemes[option.transferMethod];
    return {
      scheme: scheme.x402Scheme,
      network: v1NameOf(option.network) ?? option.network,
      maxAmountRequired: String(option.amount),
      asset: option.asset,
      payTo: option.payTo,
      resource: resource.url,
      description: resource.description,
      mimeType: resource.mimeType,
      maxTimeoutSeconds: maxTimeoutSecs,
      ...(outputSchema && { outputSchema }),
      extra: scheme.offerExtraV1(option) ?? {},
    };
  });
}

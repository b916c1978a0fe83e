import type { TransferMethod } from './transfer-method.ts';
import type { Address, Caip2 } from './primitives.ts';

/** A stablecoin the operator takes, on one network, to one address. */
export interface AcceptedToken {
  readonly network: Caip2;
  readonly chainId: number;
  readonly asset: Address;
  readonly symbol: string;
  readonly decimals: number;
  readonly payTo: Address;
  readonly transferMethod: TransferMethod;
  /** The currency that it is worth one unit of; undefined where the operator does not say. */
  readonly peg?: 'USD' | undefined;
  /** The token contract's own EIP-712 domain: without it no client can sign an EIP-3009 transfer. Both empty if it has none. */
  readonly eip712Name: string;
  readonly eip712Version: string;
  /** Undefined if its sources say it. */
  readonly ratePerNativeUnit: Rate | undefined;
  readonly markupBps: number;
  /** Undefined if its rate is fixed. */
  readonly rateTerms: RateTerms | undefined;
  /** When the operator is warned of a fixed rate; undefined: never. */
  readonly fixedRateMaxAgeSecs: number | undefined;
}

/** Where a token's rate is from, and when it may be used. */
export interface RateTerms {
  readonly sources: readonly RateSource[];
  /** How long a round may be used. */
  readonly maxAgeSecs: number;
  /** How far a source may be from the median of all. */
  readonly maxDeviationBps: number;
  /** How many sources must agree. */
  readonly minSources: number;
  /** How far the rate may be from one that the operator has fixed. */
  readonly bound: { readonly rate: Rate; readonly bps: number } | undefined;
}

/** One source of a rate. Names differ within a token. */
export type RateSource = { readonly name: string; readonly maxAgeSecs: number } & (
  | HttpRateSource
  | ChainlinkRateSource
  | UniswapRateSource
);

/** A JSON document with a rate in it. */
export interface HttpRateSource {
  readonly kind: 'http';
  readonly url: string;
  /** RFC 6901, of a number or a decimal string. */
  readonly pointer: string;
  /** Of the time that the rate is from, in Unix seconds; undefined: the moment of asking. */
  readonly timePointer: string | undefined;
  /** The document has a token's price in native units. */
  readonly inverse: boolean;
}

interface OnChain {
  readonly chainId: number;
  readonly rpcUrl: string;
  readonly contract: Address;
}

/** An aggregator with `latestRoundData()`. */
export interface ChainlinkRateSource extends OnChain {
  readonly kind: 'chainlink';
  /** The aggregator has a token's price in native units. */
  readonly inverse: boolean;
  /** Says whether the sequencer of a rollup is up. */
  readonly sequencerFeed: Address | undefined;
  /** How long after its sequencer is up again an aggregator is not trusted. */
  readonly sequencerGraceSecs: number;
}

/** A Uniswap V3 pool: the mean price of a time window. */
export interface UniswapRateSource extends OnChain {
  readonly kind: 'uniswap_v3';
  /** The token of the pool that is worth a native unit; the rate counts the other one. */
  readonly nativeToken: Address;
  readonly windowSecs: number;
}

/** Tokens per native unit (one ether's worth of wei) as an exact fraction: `numerator / 10^scale`. */
export interface Rate {
  readonly numerator: bigint;
  readonly scale: number;
}

/** A token's name, of which there is one on all networks: `network/asset`. */
export function tokenName({ network, asset }: { readonly network: string; readonly asset: string }): string {
  return `${network}/${asset}`;
}

import type { TransferMethod } from '../payments/schemes/schemes.ts';
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
  /** The token contract's own EIP-712 domain: without it no client can sign. */
  readonly eip712Name: string;
  readonly eip712Version: string;
  readonly ratePerNativeUnit: Rate;
  readonly markupBps: number;
}

/** Tokens per native unit (one ether's worth of wei) as an exact fraction: `numerator / 10^scale`. */
export interface Rate {
  readonly numerator: bigint;
  readonly scale: number;
}

import type { Address, Caip2 } from '../values/primitives.ts';

/** How a request without a credential could be paid by a spend authorization. */
export interface PaymentOffer {
  /** Atoms that cover this request. */
  readonly amount: bigint;
  readonly token: Address;
  readonly recipient: Address;
  readonly network: Caip2;
}

import { atomsOfMicros } from '../domain/spend/spend-auth.ts';
import type { Address, Caip2 } from '../domain/values/primitives.ts';
import type { SpendContext } from './context.ts';

/** How a request without a credential could be paid by a spend authorization. */
export interface PaymentOffer {
  /** Atoms that cover this request. */
  readonly amount: bigint;
  readonly token: Address;
  readonly recipient: Address;
  readonly network: Caip2;
}

export function offerOf(
  { settings, prepaid }: Pick<SpendContext, 'settings' | 'prepaid'>,
  costMicros: bigint,
): PaymentOffer {
  const { token, network, minCharge, atomsPerUnit } = settings;
  const atoms = atomsOfMicros(costMicros, atomsPerUnit);
  return { amount: atoms > minCharge ? atoms : minCharge, token, recipient: prepaid.operator, network };
}

import { type PaymentOffer } from '../../../base/errors/payment-offer.ts';
import { atomsOfMicros } from '../../../accounts/rules/spend/spend-auth.ts';
import type { SpendContext } from './context.ts';

export function offerOf(
  { settings, prepaid }: Pick<SpendContext, 'settings' | 'prepaid'>,
  costMicros: bigint,
): PaymentOffer {
  const { token, network, minCharge, atomsPerUnit } = settings;
  const atoms = atomsOfMicros(costMicros, atomsPerUnit);
  return { amount: atoms > minCharge ? atoms : minCharge, token, recipient: prepaid.operator, network };
}

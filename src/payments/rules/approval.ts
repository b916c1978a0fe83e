import type { Approval } from '../../base/values/gas-sponsoring.ts';
import type { SignedPayment } from './payment.ts';
import { permit2Address } from './schemes/permit2/signature-transfer.ts';

/** The approval without which a payment by Permit2 cannot be settled. */
export function approvalOf({ payer, asset }: Pick<SignedPayment, 'payer' | 'asset'>): Approval {
  return { from: payer, asset, spender: permit2Address };
}

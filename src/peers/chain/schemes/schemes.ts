import { type TransferMethod, transferMethods } from '../../../domain/payments/schemes/schemes.ts';
import type { Receipt } from '../receipt.ts';
import { eip3009 } from './eip3009/eip3009.ts';
import type { ChainScheme, UsedAuthorization } from './scheme.ts';

/** The on-chain half of every payment scheme. */
export const chainSchemes: Readonly<Record<TransferMethod, ChainScheme>> = { eip3009 };

/** The use of a payment authorization, and the transfer that it moved. */
export interface PaymentAuthorization extends UsedAuthorization {
  readonly transferMethod: TransferMethod;
}

/** Every payment authorization that a receipt shows as used. */
export function authorizationsIn(receipt: Receipt | null): PaymentAuthorization[] {
  if (!receipt) return [];
  return transferMethods.flatMap((transferMethod) =>
    chainSchemes[transferMethod].usedAuthorizations(receipt).map((used) => ({ ...used, transferMethod })),
  );
}

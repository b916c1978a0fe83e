import { type TransferMethod, transferMethods } from '../../../../base/values/transfer-method.ts';
import type { Hex } from '../../../../base/values/primitives.ts';
import type { Log } from '../logs.ts';
import { eip3009 } from './eip3009/eip3009.ts';
import type { ChainScheme, UsedAuthorization } from './scheme.ts';

/** The on-chain half of every payment scheme. */
export const chainSchemes: Readonly<Record<TransferMethod, ChainScheme>> = { eip3009 };

/** The use of a payment authorization, and the transfer that it moved. */
export interface PaymentAuthorization extends UsedAuthorization {
  readonly transferMethod: TransferMethod;
}

/** What the use of a payment authorization logs, in every scheme. */
export const authorizationEvents: readonly Hex[] = transferMethods.map(
  (method) => chainSchemes[method].usedEvent,
);

/** Every payment authorization that the logs of a transaction show as used. */
export function authorizationsIn(logs: readonly Log[]): PaymentAuthorization[] {
  return transferMethods.flatMap((transferMethod) =>
    chainSchemes[transferMethod].usedAuthorizations(logs).map((used) => ({ ...used, transferMethod })),
  );
}

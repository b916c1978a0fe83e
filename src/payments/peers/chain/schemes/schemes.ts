import { type TransferMethod, transferMethods } from '../../../../base/values/transfer-method.ts';
import type { Hex } from '../../../../base/values/primitives.ts';
import type { Log } from '../logs.ts';
import { eip3009 } from './eip3009/eip3009.ts';
import { permit2, upto } from './permit2/permit2-chain.ts';
import type { ChainScheme, UsedAuthorization } from './scheme.ts';

/** The on-chain half of every payment scheme. */
export const chainSchemes: Readonly<Record<TransferMethod, ChainScheme>> = { eip3009, permit2, upto };

/** The use of a payment authorization, and the transfer that it moved. */
export interface PaymentAuthorization extends UsedAuthorization {
  readonly transferMethod: TransferMethod;
}

/** What the use of a payment authorization logs, in every scheme that logs it. */
export const authorizationEvents: readonly Hex[] = transferMethods.flatMap(
  (method) => chainSchemes[method].usedEvents,
);

/** Every payment authorization that a transaction shows as used. */
export function authorizationsIn(logs: readonly Log[], input: Hex): PaymentAuthorization[] {
  let open = logs;
  return transferMethods.flatMap((transferMethod) => {
    const scheme = chainSchemes[transferMethod];
    const used = scheme.usedAuthorizations(open, input);
    // the schemes whose uses are not logged count the permits of calldata against the transfers that no log explains
    if (scheme.usedEvents.length > 0)
      open = open.filter((log) => !used.some(({ logIndex }) => logIndex === log.logIndex));
    return used.map((one) => ({ ...one, transferMethod }));
  });
}

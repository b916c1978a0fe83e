import { eip3009 } from './eip3009/eip3009.ts';
import type { PaymentScheme } from './scheme.ts';

/** Every payment scheme by its transfer method, the default first. */
const registered = { eip3009 } as const satisfies Readonly<Record<string, PaymentScheme>>;

/** How a payer's money is moved: x402's `assetTransferMethod`, and `transfer_method` in configuration and events. */
export type TransferMethod = keyof typeof registered;

export const schemes: Readonly<Record<TransferMethod, PaymentScheme>> = registered;

export const transferMethods = Object.keys(registered) as [TransferMethod, ...TransferMethod[]];

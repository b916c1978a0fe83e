/** How a payer's money is moved: x402's `assetTransferMethod`, and `transfer_method` in configuration and events. The default first. */
export const transferMethods = ['eip3009', 'permit2'] as const;
export type TransferMethod = (typeof transferMethods)[number];

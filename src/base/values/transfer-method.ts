/** How a token moves an exact amount: `transfer_method` of a token. The default first. */
export const exactMethods = ['eip3009', 'permit2'] as const;

/** How a payer's money is moved, in events: `exact` of x402 by each of its methods, and `upto`, which moves at most what was signed. */
export const transferMethods = [...exactMethods, 'upto'] as const;
export type TransferMethod = (typeof transferMethods)[number];

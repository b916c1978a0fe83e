import type { TransferMethod } from '../../../domain/payments/schemes/schemes.ts';
import { eip3009 } from './eip3009/eip3009.ts';
import type { ChainScheme } from './scheme.ts';

/** The on-chain half of every payment scheme. */
export const chainSchemes: Readonly<Record<TransferMethod, ChainScheme>> = { eip3009 };

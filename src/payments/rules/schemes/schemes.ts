import type { TransferMethod } from '../../../base/values/transfer-method.ts';
import { eip3009 } from './eip3009/eip3009.ts';
import { permit2 } from './permit2/permit2.ts';
import { upto } from './permit2/upto.ts';
import type { PaymentScheme } from './scheme.ts';

export const schemes: Readonly<Record<TransferMethod, PaymentScheme>> = { eip3009, permit2, upto };

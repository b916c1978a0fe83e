import { z } from 'zod';
import { type EventFamily, recordOnly } from './descriptor.ts';
import { address, hex32, operatorName, operatorText, settlementTerms } from './fields.ts';

const { network, symbol, decimals, amount } = settlementTerms;
const refund_id = hex32;

/**
 * What operators say of a refund that a wallet sends, before it is sent and until it is recorded, each in a stream that is named by its
 * payment. One is under way at a time, so that no two persons, tabs or loads of a page send the same one. The money itself
 * is `refunded`, which is read from the chain.
 */
export const refundEvents = {
  /** Somebody is about to send it. */
  operator_refund_started: {
    ...recordOnly,
    schema: z.strictObject({
      refund_id,
      quote_digest: hex32,
      payment_nonce: hex32,
      network,
      asset: address,
      symbol,
      decimals,
      amount,
      refund_to: address,
      operator: operatorName,
    }),
    transition: { of: 'entity', kind: 'refund', from: ['none', 'ended'], to: 'started' },
  },
  /** The wallet answered with a transaction. A later one replaces it. */
  operator_refund_sent: {
    ...recordOnly,
    schema: z.strictObject({ refund_id, network, transaction: hex32, operator: operatorName }),
    transition: { of: 'entity', kind: 'refund', from: ['started'] },
  },
  /** It is recorded, or it was not sent and never will be: another one may be sent. */
  operator_refund_ended: {
    ...recordOnly,
    schema: z.strictObject({
      refund_id,
      as: z.enum(['recorded', 'not_sent']),
      why: operatorText.optional(),
      operator: operatorName,
    }),
    transition: { of: 'entity', kind: 'refund', from: ['started'], to: 'ended' },
  },
} as const satisfies EventFamily;

import { z } from 'zod';
import { type EventFamily, recordOnly } from './descriptor.ts';
import { address, count, hex32, hexBytes, ofPayment, operatorName, operatorText, uint256 } from './fields.ts';

/** The account whose transaction pays it, and the nonce; a Safe has its own nonces. */
const sentBy = { sender: address.optional(), sender_nonce: count.optional() };
const changesPayment = { ...recordOnly, quoteState: 'changes' } as const;
const startsOrEnds = { ...changesPayment, readModels: ['payments'] } as const;
/** Also of a payment that was taken back after its refund was started. */
const begun = ['settled', 'settlement_unknown', 'settlement_failed'] as const;

/**
 * What operators say of a refund before the chain shows it, in the stream of its payment. From `refund_started` on the payment's call is not
 * delivered, and no second refund is started, until `refunded` records it or `refund_abandoned` ends it.
 */
export const refundEvents = {
  /** Somebody is about to send it to the payer, whose call is not delivered and cannot be. */
  refund_started: {
    ...startsOrEnds,
    schema: z.strictObject({
      ...ofPayment,
      amount: uint256,
      refund_to: address,
      ...sentBy,
      /** The last final block at that moment; absent if no chain was asked. */
      since_block: uint256.optional(),
      /** Why it is refunded although no block proves the payment. */
      evidence: operatorText.optional(),
      operator: operatorName,
    }),
    transition: { of: 'payment', from: ['settled'] },
  },
  /** The wallet answered with a transaction. A later one replaces it. */
  refund_sent: {
    ...changesPayment,
    schema: z.strictObject({ ...ofPayment, transaction: hex32, ...sentBy, operator: operatorName }),
    transition: { of: 'payment', from: begun },
  },
  /** One operator says that it was not sent and never will be. Another one has to say so too. */
  refund_not_sent: {
    ...changesPayment,
    schema: z.strictObject({ ...ofPayment, why: operatorText, operator: operatorName }),
    transition: { of: 'payment', from: begun },
  },
  /** Its transaction cannot land any more, or two operators say that there is none. It stays due, and another one may be started. */
  refund_abandoned: {
    ...startsOrEnds,
    schema: z.strictObject({
      ...ofPayment,
      /** `nonce_spent`: otherwise, by a final block. `failed`: its transaction failed in a final block. */
      proof: z.enum(['nonce_spent', 'operators']),
      block_number: uint256.optional(),
      block_hash: hex32.optional(),
      why: operatorText.optional(),
      operator: operatorName,
    }),
    transition: { of: 'payment', from: begun },
  },
  /**
   * The payer has signed for its money back: of a call that was not delivered or whose attempts fail, or of a route's answer that says that it
   * failed. The reason is a client's text, so it is outside the ledger. If the refund is due anyway, this decides nothing.
   */
  refund_requested: {
    ...startsOrEnds,
    schema: z.strictObject({
      ...ofPayment,
      /** Of the reason in UTF-8. */
      reason_sha256: hex32,
      /** Over the reason (EIP-712, or ERC-1271). */
      signature: hexBytes,
    }),
    transition: { of: 'payment', from: ['settled'] },
    followUps: ['alert'],
  },
  /** An operator agrees: the refund is due. A call that was still in the queue is given up before. */
  refund_request_granted: {
    ...startsOrEnds,
    schema: z.strictObject({ ...ofPayment, operator: operatorName }),
    transition: { of: 'payment', from: ['settled'] },
    bookkeeping: 'posts',
    reconciliation: 'needed',
    reopens: 'after_completion',
  },
  refund_request_declined: {
    ...startsOrEnds,
    schema: z.strictObject({ ...ofPayment, why: operatorText, operator: operatorName }),
    transition: { of: 'payment', from: ['settled'] },
  },
} as const satisfies EventFamily;

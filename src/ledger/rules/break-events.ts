import { z } from 'zod';
import { type EventFamily, recordOnly } from './descriptor.ts';
import { explanationClasses } from './explanation-class.ts';
import { count, hex32, operatorName, operatorText, reason, settlementTerms } from './fields.ts';

/** Operators' explanations of the breaks of reconciliations, each in a stream with the id of its break. */
export const breakEvents = {
  /** The last one of a break counts. */
  operator_break_explained: {
    ...recordOnly,
    schema: z.strictObject({
      break_id: hex32,
      as: z.enum(explanationClasses),
      note: operatorText,
      /** Of the break: its class in the reconciliation, and where it is. */
      item_class: reason,
      network: settlementTerms.network,
      transaction: hex32.optional(),
      log_index: count.optional(),
      quote_digest: hex32.optional(),
      operator: operatorName,
    }),
    transition: { of: 'entity', kind: 'break', from: ['none', 'explained'], to: 'explained' },
    reconciliation: 'needed',
  },
} as const satisfies EventFamily;

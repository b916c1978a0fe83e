import { z } from 'zod';
import { rateProblems } from '../../base/values/round.ts';
import { type EventFamily, note, recordOnly } from './descriptor.ts';
import { address, count, hex32, network, reason, runner, symbol } from './fields.ts';

/** Tokens for a native unit: a decimal without an exponent, with at most 40 decimals. */
const rate = z.string().regex(/^(?:0|[1-9]\d{0,77})(?:\.\d{0,39}[1-9])?$/);

/** The reasons of a price. */
export const rateEvents = {
  /**
   * From now on a token has another rate, or none: `rate` is absent while none is current, and `reason` says why. `terms` is the hash
   * of the rate's configuration.
   */
  rate_changed: {
    ...recordOnly,
    schema: z.strictObject({
      network,
      asset: address,
      symbol,
      terms: hex32,
      previous_rate: rate.optional(),
      rate: rate.optional(),
      reason: reason.optional(),
      sources: z.array(
        z.strictObject({
          source: runner,
          rate: rate.optional(),
          observed_at: count.optional(),
          problem: z.enum(rateProblems).optional(),
        }),
      ),
    }),
    transition: note,
  },
} as const satisfies EventFamily;

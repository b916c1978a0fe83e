import { z } from 'zod';
import { bookFormats } from '../../base/values/format.ts';
import { originPattern } from '../../base/values/log/checkpoint.ts';
import { type EventFamily, recordOnly } from './descriptor.ts';
import { count, hex32, operatorName, operatorText } from './fields.ts';

/** `from_ms` inclusive, `to_ms` exclusive, in Unix milliseconds. */
const ofPeriod = { from_ms: count, to_ms: count };

/** All of them are of one stream, so that periods are closed one after the other. */
const transition = { of: 'entity', kind: 'period', from: ['none', 'recorded'], to: 'recorded' } as const;

/** What persons say of a period of the books: closed, reviewed, open again. */
export const periodEvents = {
  /** The period is over and its reports are these. Named by their hashes, so that a later run can compare itself with them. */
  operator_period_closed: {
    ...recordOnly,
    schema: z.strictObject({
      ...ofPeriod,
      /** Of the IANA database: where the days of the journals are counted. */
      time_zone: z.string().regex(/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/),
      /** The sealed head of the log up to which the reconciliation read the ledger; the root in base64. */
      head: z.strictObject({
        origin: z.string().regex(originPattern),
        size: count.min(1),
        root: z.string().regex(/^[A-Za-z0-9+/]{43}=$/),
      }),
      /** SHA-256 of the reconciliation's report, and of its part about the period, without the head that it read. */
      report_sha256: hex32,
      outcome_sha256: hex32,
      breaks: count,
      breaks_explained: count,
      open_items: count,
      /** SHA-256 of each export, and the edition of their formats. */
      exports: z.partialRecord(z.enum(bookFormats), hex32),
      formats_edition: count.min(1),
      /** Why it was closed although breaks were not explained. */
      despite: operatorText.optional(),
      operator: operatorName,
    }),
    transition,
  },
  /** Another person compared it with its reports. `reconciled`: with the chains too. */
  operator_period_reviewed: {
    ...recordOnly,
    schema: z.strictObject({
      ...ofPeriod,
      report_sha256: hex32,
      reconciled: z.boolean(),
      operator: operatorName,
    }),
    transition,
  },
  /** The close does not hold any more. Only the last period that is closed can be opened again. */
  operator_period_reopened: {
    ...recordOnly,
    schema: z.strictObject({ ...ofPeriod, reason: operatorText, operator: operatorName }),
    transition,
  },
} as const satisfies EventFamily;

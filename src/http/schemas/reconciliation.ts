import { z } from 'zod';
import { address, count, decimals, network, symbol, time } from './values.ts';

export const reconciliationId = z
  .int()
  .min(1)
  .meta({ description: 'Its number, from 1.', examples: [1] });

export const reconciliationsQuery = z.strictObject({
  cursor: z
    .string()
    .max(64)
    .optional()
    .meta({ description: '`next` of the page before, as it is: made by this ledger, for this list.' }),
  limit: z.coerce.number().int().min(1).max(1_000).default(100).meta({ description: 'At most so many.' }),
});

const result = z.enum(['clean', 'open_items', 'breaks']);

export const reconciliations = z
  .strictObject({
    reconciliations: z.array(
      z.strictObject({
        id: reconciliationId,
        from: time,
        to: time.meta({ description: 'Not part of the period.' }),
        size: count.meta({ description: 'Events of the ledger that was read.' }),
        root: z.string().meta({ description: 'Its Merkle root, base64.' }),
        result,
        breaks: count,
        open_items: count,
        report_sha256: z.string().regex(/^[0-9a-f]{64}$/),
        at: time,
      }),
    ),
    next: z.string().nullable().meta({ description: 'The cursor of the next page; null at the end.' }),
  })
  .meta({ description: 'Reconciliations in the order they were made.' });
export type Reconciliations = z.infer<typeof reconciliations>;

const amount = z
  .string()
  .regex(/^-?\d+$/)
  .meta({ description: 'Atoms, as a decimal string.' });
const balance = z.strictObject({
  atoms: amount.nullable(),
  how: z.enum(['chain', 'computed', 'no_archive_state']),
});

const account = z.strictObject({
  network,
  asset: address,
  pay_to: address,
  symbol: symbol.nullable(),
  decimals: decimals.nullable(),
  opening: balance,
  movements: z.array(z.strictObject({ class: z.string(), count, in: amount, out: amount })),
  closing: balance,
  ledger: z.strictObject({
    opening: amount,
    in: amount,
    out: amount,
    closing: amount,
    difference_opening: amount.nullable(),
    difference_closing: amount.nullable(),
  }),
});

export const reconciliation = z
  .strictObject({
    tollbook_reconciliation: z.literal(1),
    period: z.strictObject({ from: time, to: time }),
    ledger: z.strictObject({
      size: count,
      root: z.string(),
      checkpoint: z.string().nullable(),
      fault: z.strictObject({ seq: count, words: z.string() }).nullable(),
    }),
    networks: z.array(
      z.strictObject({
        network,
        from_block: amount,
        to_block: amount,
        to_hash: z.string(),
        is_covered: z.boolean(),
        completeness: z.enum(['balance', 'two_passes', 'sample']),
      }),
    ),
    accounts: z.array(account),
    classes: z.record(
      z.string(),
      z.strictObject({
        kind: z.enum(['ok', 'open', 'break']),
        count,
        items: z.array(z.looseObject({})),
        groups: z.array(z.looseObject({})),
      }),
    ),
    result,
    breaks: count,
    open_items: count,
  })
  .meta({ description: 'The report as it was made: canonical JSON (RFC 8785), to the byte.' });

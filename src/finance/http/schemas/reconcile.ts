import { z } from 'zod';
import { address, count, decimals, network, symbol, time } from '../../../base/http/values.ts';
import { cursorQuery, next } from '../../../accounts/http/schemas/list-cursor.ts';

export const reconciliationId = z
  .int()
  .min(1)
  .meta({ description: 'The id of the reconciliation, counted from 1.', examples: [1] });

export const reconciliationsQuery = z.strictObject(cursorQuery);

const result = z.enum(['clean', 'open_items', 'breaks']);

export const reconciliations = z
  .strictObject({
    reconciliations: z.array(
      z.strictObject({
        id: reconciliationId,
        from: time,
        to: time.describe('The end of the period, not included.'),
        size: count.describe('The number of ledger events that were read.'),
        root: z.string().describe('The Merkle root over these events, base64.'),
        result,
        breaks: count,
        open_items: count,
        report_sha256: z.string().regex(/^[0-9a-f]{64}$/),
        at: time,
      }),
    ),
    next,
  })
  .describe('Reconciliations in the order in which they were made.');
export type Reconciliations = z.infer<typeof reconciliations>;

const amount = z
  .string()
  .regex(/^-?\d+$/)
  .describe('Atoms, as a decimal string.');
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
  bridge: z
    .strictObject({
      books: amount,
      unconfirmed: amount,
      treasury: amount,
      lines: z.array(
        z.strictObject({ reason: z.string(), count, atoms: amount, items: z.array(z.looseObject({})) }),
      ),
      opening: amount.nullable(),
      not_explained: amount.nullable(),
    })
    .nullable()
    .optional()
    .describe("From the closing of the books to the chain's; absent in reports of earlier versions."),
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
        explained: count.optional().describe('Of breaks: how many an operator has explained.'),
        items: z.array(z.looseObject({})),
        groups: z.array(z.looseObject({})),
      }),
    ),
    result,
    breaks: count,
    breaks_explained: count
      .optional()
      .describe('Breaks of which an operator said what they are; absent in reports of earlier versions.'),
    open_items: count,
  })
  .describe('The report byte for byte as it was stored: canonical JSON (RFC 8785).');

import { z } from 'zod';
import { accountNamePattern } from '../../base/values/price.ts';
import { type EventFamily, recordOnly } from './descriptor.ts';
import { count, decimals, hex32, operatorName, uint256 } from './fields.ts';

/** Of a series of invoice numbers, which is a stream: `invoice:2026`. */
export const invoiceSeries = /^[A-Z0-9][A-Z0-9-]{0,15}$/;

/** Invoices: the number of each is its place in the stream of its series, so no number repeats or is left out. */
export const invoiceEvents = {
  /** A customer was invoiced for the sales of a closed period. The document is not in the ledger; its hash is. */
  operator_invoice_issued: {
    ...recordOnly,
    schema: z.strictObject({
      series: z.string().regex(invoiceSeries),
      number: count.min(1),
      /** A wallet, or the name of a credit account. */
      customer: z.string().regex(accountNamePattern),
      from_ms: count,
      to_ms: count,
      /** The event of the period's close. */
      close_seq: count.min(1),
      currency: z.string().regex(/^[A-Z][A-Z0-9-]{1,23}$/),
      decimals,
      /** In units of the currency with these decimals; `tax` is the part of it that is tax. */
      gross: uint256,
      tax: uint256,
      document_sha256: hex32,
      operator: operatorName,
    }),
    transition: { of: 'entity', kind: 'invoice', from: ['none', 'recorded'], to: 'recorded' },
  },
} as const satisfies EventFamily;

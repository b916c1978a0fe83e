import type pg from 'pg';
import type { EventOf } from '../../../ledger/rules/event.ts';
import type { LedgerWriter } from '../../../ledger/store/ledger.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import type { ClosedPeriod } from '../../rules/periods/periods.ts';
import type { Invoice } from '../../rules/invoices/invoice.ts';
import { hashOfText } from '../periods/pins.ts';
import { invoiceJson } from './documents.ts';

export type IssuedInvoice = EventOf<'operator_invoice_issued'>;

export interface InvoiceOrder {
  readonly series: string;
  readonly customer: string;
  readonly closed: ClosedPeriod;
  readonly invoice: Invoice;
  readonly operator: string;
}

export type InvoiceAnswer =
  | { readonly kind: 'issued' | 'repeated'; readonly number: string; readonly document: string }
  | { readonly kind: 'refused'; readonly message: string };

/** The invoices of a series, in the order of their numbers. */
export async function listInvoices(pool: pg.Pool, series: string): Promise<IssuedInvoice[]> {
  const { events } = await readStream(pool, `invoice:${series}`);
  return events.filter((event) => event.type === 'operator_invoice_issued');
}

/** As documents show it: `2026-0001`. */
export function invoiceNumber({ series, number }: Pick<IssuedInvoice['data'], 'series' | 'number'>): string {
  return `${series}-${String(number).padStart(4, '0')}`;
}

/** Attempts against commands that number invoices at the same time; each of which issued one meanwhile. */
const mostAttempts = 1_000;

/**
 * Records an invoice under the next number of its series. The number is the event's place in the stream, at which only one event can be:
 * so commands at the same time get different numbers, and a command that is killed has issued either a whole number or none. A customer
 * has one invoice of a period in a series: the same order again gives the same number.
 */
export async function issueInvoice(
  { pool, lane }: LedgerWriter,
  { series, customer, closed, invoice, operator }: InvoiceOrder,
): Promise<InvoiceAnswer> {
  const { period, close } = closed;
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    const issued = await listInvoices(pool, series);
    const before = issued.find(
      ({ data }) =>
        data.customer === customer && data.from_ms === period.fromMs && data.to_ms === period.toMs,
    );
    if (before) {
      const number = invoiceNumber(before.data);
      const document = invoiceJson(invoice, { customer, period }, number);
      return hashOfText(document) === before.data.document_sha256
        ? { kind: 'repeated', number, document }
        : {
            kind: 'refused',
            message: `invoice ${number} of this customer and period is another one: give the rates, taxes and close with which it was issued`,
          };
    }
    const data = {
      series,
      number: issued.length + 1,
      customer,
      from_ms: period.fromMs,
      to_ms: period.toMs,
      close_seq: close.seq,
      currency: invoice.currency,
      decimals: invoice.decimals,
      gross: String(invoice.gross),
      tax: String(invoice.tax),
      operator,
    };
    const number = invoiceNumber(data);
    const document = invoiceJson(invoice, { customer, period }, number);
    const { outcome } = await lane.append({
      stream: `invoice:${series}`,
      expect: issued.length,
      events: [{ type: 'operator_invoice_issued', data: { ...data, document_sha256: hashOfText(document) } }],
    });
    if (outcome === 'ok') return { kind: 'issued', number, document };
  }
  return { kind: 'refused', message: 'others number invoices of this series all the time: try again' };
}

import { canonicalJson } from '../../../base/values/canonical-json.ts';
import { decimalText } from '../../../base/values/entry.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { type Period, shortInstant } from '../../../base/values/period.ts';
import { utc } from '../../../base/values/time-zone.ts';
import { type Valuation, valueDecimals } from '../../../audit/rules/bookkeeping/rates.ts';
import { worthOn } from '../../../audit/rules/bookkeeping/worth.ts';
import type { Invoice } from '../../rules/invoices/invoice.ts';
import type { Statement } from '../../rules/invoices/statement.ts';

/** Of whom and when a document is. */
export interface DocumentOf {
  readonly customer: string;
  readonly period: Period;
}

/** The invoice that is hashed and kept: canonical JSON with amounts as decimal texts. Its page shows the same. */
export function invoiceJson(invoice: Invoice, { customer, period }: DocumentOf, number: string): string {
  const text = (amount: bigint): string => decimalText(amount, invoice.decimals);
  return `${canonicalJson({
    invoice: number,
    customer,
    ...endsOf(period),
    currency: invoice.currency,
    lines: invoice.lines.map(({ of, sales, gross }) => ({ of, sales, gross: text(gross) })),
    taxes: invoice.taxes.map(({ country, rate, gross, tax }) => ({
      country,
      rate,
      net: text(gross - tax),
      tax: text(tax),
      gross: text(gross),
    })),
    net: text(invoice.gross - invoice.tax),
    tax: text(invoice.tax),
    gross: text(invoice.gross),
  })}\n`;
}

/** The same as a page to print, without scripts. `billTo`: lines of the customer's address. */
export function invoicePage(
  invoice: Invoice,
  { customer, period }: DocumentOf,
  { number, billTo }: { readonly number: string; readonly billTo: readonly string[] },
): string {
  const text = (amount: bigint): string => `${decimalText(amount, invoice.decimals)} ${invoice.currency}`;
  const lines = invoice.lines.map(
    ({ of, sales, gross }) =>
      html`<tr>
        <td>${of}</td>
        <td class="amount">${sales}</td>
        <td class="amount">${text(gross)}</td>
      </tr>`,
  );
  const taxes = invoice.taxes.map(
    ({ country, rate, gross, tax }) =>
      html`<tr>
        <td>Of this, tax in ${country} at ${rate} %</td>
        <td class="amount">net ${text(gross - tax)}</td>
        <td class="amount">${text(tax)}</td>
      </tr>`,
  );
  return pageOf(
    `Invoice ${number}`,
    html`<h1>Invoice ${number}</h1>
      <p>${billTo.map((line) => html`${line}<br />`)}Customer ${customer}</p>
      <p>Services ${spanOf(period)}. Paid.</p>
      <table>
        <thead>
          <tr>
            <th>Service</th>
            <th class="amount">Sales</th>
            <th class="amount">Price with tax</th>
          </tr>
        </thead>
        <tbody>
          ${lines}
        </tbody>
        <tfoot>
          <tr>
            <th>Total</th>
            <td></td>
            <th class="amount">${text(invoice.gross)}</th>
          </tr>
          ${taxes}
        </tfoot>
      </table>`,
  );
}

/** A statement as canonical JSON. */
export function statementJson(
  { opening, lines, closing }: Statement,
  { customer, period }: DocumentOf,
  valuation: Valuation | undefined,
): string {
  return `${canonicalJson({
    customer,
    ...endsOf(period),
    opening: balancesJson(opening),
    lines: lines.map((line) => ({
      at: line.at,
      what: line.what,
      reference: line.reference ?? '',
      commodity: line.move.commodity.name,
      amount: decimalText(line.atoms, line.move.commodity.decimals),
      value: valueOfLine(line, valuation),
    })),
    closing: balancesJson(closing),
    value_currency: valuation?.currency ?? '',
  })}\n`;
}

/** The same as a page to print, without scripts. */
export function statementPage(
  { opening, lines, closing }: Statement,
  { customer, period }: DocumentOf,
  valuation: Valuation | undefined,
): string {
  const rows = lines.map(
    (line) =>
      html`<tr>
        <td>${line.at.slice(0, 10)}</td>
        <td>${line.what.replaceAll('_', ' ')}</td>
        <td class="small">${line.reference ?? ''}</td>
        <td class="amount">
          ${decimalText(line.atoms, line.move.commodity.decimals)} ${line.move.commodity.name}
        </td>
        <td class="amount">${valueOfLine(line, valuation)}</td>
      </tr>`,
  );
  return pageOf(
    `Statement of ${customer}`,
    html`<h1>Statement</h1>
      <p>Customer ${customer}, ${spanOf(period)}. What we owe you is above zero.</p>
      <table>
        <thead>
          <tr>
            <th>Day</th>
            <th>Entry</th>
            <th>Reference</th>
            <th class="amount">Amount</th>
            <th class="amount">${valuation?.currency ?? ''}</th>
          </tr>
        </thead>
        <tbody>
          ${balanceRows('Opening', opening)}${rows}${balanceRows('Closing', closing)}
        </tbody>
      </table>`,
  );
}

function balancesJson(list: Statement['opening']) {
  return list.map(({ account, commodity, atoms }) => ({
    account,
    commodity: commodity.name,
    amount: decimalText(atoms, commodity.decimals),
  }));
}

function balanceRows(title: string, list: Statement['opening']): Html[] {
  return list.map(
    ({ account, commodity, atoms }) =>
      html`<tr>
        <th>${title}</th>
        <td>${account}</td>
        <td></td>
        <td class="amount">${decimalText(atoms, commodity.decimals)} ${commodity.name}</td>
        <td></td>
      </tr>`,
  );
}

function valueOfLine(
  { at, atoms, move }: Statement['lines'][number],
  valuation: Valuation | undefined,
): string {
  const micros = valuation && worthOn(atoms, move.commodity, at.slice(0, 10), valuation);
  return micros === undefined ? '' : decimalText(micros, valueDecimals);
}

/** The first day and the day after the last one. */
function endsOf({ fromMs, toMs, zone = utc }: Period) {
  return { from: shortInstant(fromMs, zone), to: shortInstant(toMs, zone), time_zone: zone.name };
}

function spanOf({ fromMs, toMs, zone = utc }: Period): string {
  return `from ${zone.dayOf(fromMs)} to ${zone.dayOf(toMs - 1)}`;
}

const css = `body { font: 11pt sans-serif; margin: 2cm; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #999; padding: 4px; text-align: left; vertical-align: top; }
.amount { text-align: right; white-space: nowrap; }
.small { font-size: 7pt; word-break: break-all; }`;

function pageOf(title: string, body: Html): string {
  const head = `<meta charset="utf-8">${html`<title>${title}</title>`.toString()}<style>${css}</style>`;
  return `<!doctype html>\n<html lang="en"><head>${head}</head><body>${body.toString()}</body></html>\n`;
}

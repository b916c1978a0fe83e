import { html, type Html } from '../../../base/values/html.ts';
import { explorerLink } from '../payments/explorer.ts';
import { tokenAmount } from '../../pages/jobs/token-amount.ts';
import { shortId } from '../../pages/elements.ts';
import type { View } from '../../pages/visit.ts';
import { type SectionParts, sectionView } from '../layout.ts';
import type { ConsoleSite } from '../visit.ts';

export const booksPath = '/console/books';

export const periodsPath = `${booksPath}/periods`;
export const refundsPath = `${booksPath}/refunds`;
export const moneyPath = `${booksPath}/money`;
export const logPath = `${booksPath}/log`;

/** The parts of the books; `jobs`: only where jobs are sold. */
const tabs = [
  { path: booksPath, label: 'Reconciliations', jobs: false },
  { path: periodsPath, label: 'Periods', jobs: false },
  { path: refundsPath, label: 'Refunds due', jobs: true },
  { path: moneyPath, label: 'Sweeps and others', jobs: true },
  { path: logPath, label: 'Log', jobs: false },
] as const;

export type BooksTab = (typeof tabs)[number]['path'];

/** A page of the books, with the way to the other parts of them. */
export function booksView(
  { jobs }: Pick<ConsoleSite, 'jobs'>,
  tab: BooksTab,
  title: string,
  content: Html,
  parts: SectionParts = {},
): View {
  const shown = tabs.filter((one) => jobs !== undefined || !one.jobs);
  const nav = html`<nav aria-label="Books" class="tabs">
    <ul>
      ${shown.map(({ path, label }) => html`<li><a href="${path}" ${path === tab && html`aria-current="page"`}>${label}</a></li>`)}
    </ul>
  </nav>`;
  const view = sectionView(booksPath, title, content, parts);
  return { ...view, body: html`${nav}${view.body}` };
}

/** A token as a report names it; if the decimals are unknown, amounts are atoms. */
export interface ReportedToken {
  readonly network: string;
  readonly asset?: string | undefined;
  readonly symbol?: string | null | undefined;
  readonly decimals?: number | null | undefined;
}

/** An amount of a report, with its sign. `digits`: after the point, in a column. */
export function reportedAmount(
  atoms: string | null | undefined,
  { network, asset, symbol, decimals }: ReportedToken,
  digits = 0,
): Html | undefined {
  if (atoms === null || atoms === undefined) return undefined;
  const name = symbol ?? (asset === undefined ? '' : `${asset.slice(0, 8)}…`);
  return tokenAmount(BigInt(atoms), { symbol: name, decimals: decimals ?? 0, network }, digits);
}

/** The links of a payment and of a transaction that a report names. */
export function paymentLink(digest: string): Html {
  return html`<a href="/console/payments/${digest}">${digest.slice(0, 10)}…</a>`;
}

export function transactionWithLink(network: string, transaction: string): Html {
  return html`${shortId(transaction, 'the transaction')} ${explorerLink(network, transaction)}`;
}

/** The breaks of a report as it was made. */
export function breaksText(breaks: number, explained: number): string {
  if (breaks === 0) return 'none';
  if (breaks === explained) return `${breaks}, explained when the report was made`;
  const which = explained === 0 ? 'not' : `only ${explained} of them`;
  return `${breaks}, ${which} explained when the report was made`;
}

/** They differ from breaks: both sides agree, and something is still to come. */
export function openItemsText(items: number): string {
  return items === 0
    ? 'none: nothing is pending, owed back or in suspense'
    : `${items} pending, owed back or in suspense`;
}

/** A class of a reconciliation as a title. */
export function className(name: string): string {
  return name === 'on_chain_without_event' ? 'money that no event explains' : words(name);
}

/** `amount_mismatch` as a person reads it. */
export function words(code: string): string {
  return code.replaceAll('_', ' ');
}

/** The page of one payment's refund. */
export function refundPath(of: { readonly quote_digest: string; readonly payment_nonce: string }): string {
  return `${refundsPath}/${of.quote_digest}/${of.payment_nonce}`;
}

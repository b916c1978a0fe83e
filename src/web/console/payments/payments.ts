import { cursorOf, pageLinks, pageRows, searchField, tableSheet } from '../tables.ts';
import { Readable } from 'node:stream';
import { csvLine } from '../../../base/values/csv-line.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { isHex32, parseAddress } from '../../../base/values/primitives.ts';
import { paymentStates } from '../../../audit/http/schemas/projections.ts';
import type { Filters } from '../../pages/filters.ts';
import { pathWith } from '../../pages/own-path.ts';
import { badge, type Column, empty, field, shortId, time, selectField } from '../../pages/elements.ts';
import { tokenAmount } from '../../pages/jobs/token-amount.ts';
import type { Answer, View } from '../../pages/visit.ts';
import { findStreamOfCall, searchPayments } from '../../../payments/store/payment-search.ts';
import { type ListedPayment, listLatestPayments } from '../../../ledger/store/payments.ts';
import { listRefundsDue } from '../../../payments/store/refunds.ts';
import { refundsPath } from '../books/books-view.ts';
import { findClaim, readStream } from '../../../ledger/store/streams.ts';
import { paymentIdClaim } from '../../../payments/store/claims.ts';
import { sectionView } from '../layout.ts';
import type { ConsoleSite, OperatorVisit, Section } from '../visit.ts';
import { jobName } from '../words.ts';
import { paymentPages } from './payment.ts';
import { stateBadge, stateText } from './state-badge.ts';

const path = '/console/payments';
const shownRows = 50;
const csvRows = 10_000;

/** Payments: one search box, filters, and a page of each. */
export const paymentsSection: Section = {
  path,
  label: 'Payments',
  isOffered: ({ jobs }) => jobs !== undefined,
  register(console, site) {
    console.show(path, listOrOne, 'viewer', filters);
    console.show(`${path}.csv`, csvOf, 'viewer', filters);
    paymentPages(console, site);
  },
};

const isDay = (text: string): boolean => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));

const filters: Filters = {
  state: (text) => paymentStates.some((state) => state === text),
  from: isDay,
  to: isDay,
};

const stateTexts = Object.fromEntries(paymentStates.map((state) => [state, stateText(state)]));

type Shown = ReturnType<typeof pageRows<ListedPayment>>;

async function listOrOne(visit: OperatorVisit): Promise<Answer> {
  const one = await onlyOne(visit, searchText(visit));
  if (one !== undefined) return { kind: 'redirect', to: `${path}/${one}` };
  return listView(visit, await readShown(visit, shownRows));
}

function searchText({ query }: OperatorVisit): string {
  return (query.get('q') ?? '').trim();
}

/** The digest of the one payment that a whole digest or a call's id names. */
async function onlyOne({ site }: OperatorVisit, text: string): Promise<string | undefined> {
  const { pool } = site.ledger;
  const digest = text.toLowerCase();
  if (isHex32(digest) && (await readStream(pool, digest)).events.length > 0) return digest;
  // an id of a payment is unique within its payer alone
  const [, payer, id] = /^(0x[0-9a-f]{40})\s+(\S+)$/i.exec(text) ?? [];
  if (payer !== undefined && id !== undefined)
    return findClaim(pool, paymentIdClaim(payer.toLowerCase(), id, ''));
  return /^[1-9]\d{0,14}$/.test(text) ? findStreamOfCall(pool, Number(text)) : undefined;
}

async function readShown(visit: OperatorVisit, limit: number): Promise<Shown> {
  const { site, query } = visit;
  const { pool } = site.ledger;
  const text = searchText(visit).toLowerCase();
  const payer = parseAddress(text);
  const digits = /^(?:0x)?([0-9a-f]{4,64})$/.exec(text)?.[1];
  if (text !== '' && payer === undefined)
    return { shown: digits === undefined ? [] : await searchPayments(pool, digits, limit), next: undefined };
  const state = paymentStates.find((one) => one === query.get('state'));
  const chosen = { payer, state, ...timesOf(query) };
  const { rows } = await listLatestPayments(pool, chosen, cursorOf(query, 'before'), limit + 1);
  return pageRows(rows, limit, ({ seq }) => seq);
}

/** Whole days of UTC, the last one included. */
function timesOf(query: URLSearchParams): { readonly from?: Date; readonly to?: Date } {
  const dayOf = (name: string, plusDays: number): Date | undefined => {
    const day = query.get(name) ?? '';
    return day === '' ? undefined : new Date(Date.parse(day) + plusDays * 86_400_000);
  };
  const [from, to] = [dayOf('from', 0), dayOf('to', 1)];
  return { ...(from && { from }), ...(to && { to }) };
}

/** The filters of a page as its address has them, which can be kept and passed on. */
function chosenOf({ query }: OperatorVisit): Record<string, string | undefined> {
  return Object.fromEntries(
    ['q', 'state', 'from', 'to'].map((name) => [name, query.get(name)?.trim() ?? undefined]),
  );
}

async function listView(visit: OperatorVisit, { shown: rows, next }: Shown): Promise<View> {
  const chosen = chosenOf(visit);
  const isFiltered = Object.values(chosen).some((value) => value !== undefined && value !== '');
  const csv = pathWith(`${path}.csv`, { ...chosen, before: visit.query.get('before') ?? undefined });
  const due = (await listRefundsDue(visit.site.ledger.pool, 0, shownRows)).rows.length;
  const body = html`${due > 0 && html`<p class="notice bad"><a href="${refundsPath}">${due === 1 ? '1 refund is' : `${due < shownRows ? due : `${shownRows} or more`} refunds are`} due</a>.</p>`}
  ${searchForm(visit)}
  ${
    rows.length === 0
      ? empty(
          isFiltered ? 'No such payment' : 'No payments yet',
          isFiltered
            ? 'A part is four hexadecimal digits or more of the beginning of a quote, transaction or payer, or seven of anywhere in a transaction.'
            : 'Each payment is here a moment after it began.',
        )
      : tableSheet('Payments', columnsFor(visit.site), rows)
  }
  ${pageLinks(path, 'before', { isFirst: !visit.query.has('before'), next }, ['The newest', 'Older'], chosen)}`;
  const beside = html`<a class="button plain" href="${csv}">Download as CSV</a>`;
  return sectionView(path, 'Payments', body, { beside });
}

function searchForm({ query }: OperatorVisit): Html {
  return html`<form method="get" action="${path}" class="filters" role="search">
    ${searchField('Search', query.get('q'), { maxLength: 200, hint: 'A quote, transaction or payer, or a part of one; the number of a call; a payer and its payment id' })}
    ${selectField({ label: 'State', name: 'state', values: paymentStates, texts: stateTexts, value: query.get('state'), any: 'any' })}
    ${field({ label: 'From', name: 'from', type: 'date', value: query.get('from'), isOptional: true })}
    ${field({ label: 'To', name: 'to', type: 'date', value: query.get('to'), isOptional: true })}
    <button>Search</button>
  </form>`;
}

const columnsFor = (site: ConsoleSite): Column<ListedPayment>[] => [
  {
    label: 'Started',
    cell: ({ at, quote_digest: digest }) => html`<a href="${path}/${digest}">${time(new Date(at))}</a>`,
  },
  {
    label: 'State',
    cell: ({ state, refund_due: due }) =>
      html`${stateBadge(state)} ${due !== null && badge('refund due', 'bad')}`,
  },
  {
    label: 'Amount',
    isNumber: true,
    cell: ({ amount, symbol, decimals, network }) =>
      tokenAmount(BigInt(amount), { symbol, decimals, network }),
  },
  {
    label: 'Job',
    cell: ({ service_id: serviceId, job_index: jobIndex }) =>
      serviceId === null || jobIndex === null ? '' : jobName(site, { serviceId, jobIndex }),
  },
  { label: 'Call', isNumber: true, cell: ({ call_id: call }) => call ?? '' },
  { label: 'Payer', cell: ({ payer }) => shortId(payer, 'the payer') },
  {
    label: 'Transaction',
    cell: ({ transaction }) => (transaction === null ? '' : shortId(transaction, 'the transaction')),
  },
];

const csvColumns = [
  'at',
  'quote_digest',
  'state',
  'network',
  'symbol',
  'decimals',
  'amount',
  'payer',
  'pay_to',
  'transaction',
  'block_number',
  'service_id',
  'job_index',
  'call_id',
  'settled_at',
  'refunded_at',
  'refund_transaction',
  'refund_due',
] as const satisfies readonly (keyof ListedPayment)[];

/** The rows of this page and the next ones: at most 10,000. */
async function csvOf(visit: OperatorVisit): Promise<Answer> {
  const { shown: rows } = await readShown(visit, csvRows);
  const lines = rows.map((row) => csvLine(csvColumns.map((column) => String(row[column] ?? ''))));
  const bytes = Buffer.from([csvLine(csvColumns), ...lines].join(''));
  return { kind: 'file', name: 'payments.csv', bytes: Readable.from([bytes]), length: bytes.length };
}

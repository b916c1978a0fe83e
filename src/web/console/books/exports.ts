import { Readable } from 'node:stream';
import { openBooks } from '../../../finance/use-cases/books/books.ts';
import { writeBooks } from '../../../finance/use-cases/books/format.ts';
import { ExportError, openDatabaseSource } from '../../../finance/use-cases/books/source.ts';
import { BooksError } from '../../../audit/rules/bookkeeping/books-error.ts';
import { type BookFormat, bookFormats, isBookFormat } from '../../../base/values/format.ts';
import { html, type Html } from '../../../base/values/html.ts';
import { type Period, periodName } from '../../../base/values/period.ts';
import { findTimeZone, utc } from '../../../base/values/time-zone.ts';
import { pathWith } from '../../pages/own-path.ts';
import { notFound, problemView } from '../../pages/problem.ts';
import type { Answer } from '../../pages/visit.ts';
import type { Console, OperatorVisit } from '../visit.ts';
import { booksPath } from './books-view.ts';

const endings: Readonly<Record<BookFormat, string>> = {
  csv: 'csv',
  parquet: 'parquet',
  beancount: 'beancount',
  hledger: 'journal',
  summary: 'csv',
  'summary-page': 'html',
};

/** The exports of a period, in every format, as `tollbook export` writes them: bytes are sent while they are made. */
export function exportPages(console: Console): void {
  console.showPresent(`${booksPath}/exports/:format`, exportOf, 'finance');
}

const formatTexts: Readonly<Record<BookFormat, string>> = {
  csv: 'Spreadsheet (CSV)',
  parquet: 'Data analysis (Parquet)',
  beancount: 'Beancount',
  hledger: 'hledger',
  summary: 'Summary (text)',
  'summary-page': 'Summary (page)',
};

/** A link to each export of a period. */
export function exportLinks({ fromMs, toMs, zone = utc }: Period): Html {
  const query = { from: String(fromMs), to: String(toMs), zone: zone.name };
  return html`<p class="actions">
    ${bookFormats.map(
      (format) =>
        html`<a class="button plain" href="${pathWith(`${booksPath}/exports/${format}`, query)}"
          >${formatTexts[format]}</a
        >`,
    )}
  </p>`;
}

async function exportOf({ site, params, query }: OperatorVisit): Promise<Answer> {
  const format = params['format'] ?? '';
  const period = periodIn(query);
  if (!isBookFormat(format) || !period) return notFound('export');
  try {
    const source = await openDatabaseSource(site.ledger.pool);
    const books = await openBooks(source, period);
    const name = `${format}-${periodName(period).replaceAll(/[^\w-]/g, '-')}.${endings[format]}`;
    return { kind: 'file', name, bytes: Readable.from(writeBooks(books, format), { highWaterMark: 1 }) };
  } catch (error) {
    if (error instanceof ExportError || error instanceof BooksError) return problemView(409, error.message);
    throw error;
  }
}

/** Its ends in Unix milliseconds, and where its days begin. */
function periodIn(query: URLSearchParams): Period | undefined {
  const [fromMs, toMs] = ['from', 'to'].map((name) => msOf(query.get(name)));
  const zone = findTimeZone(query.get('zone') ?? utc.name);
  if (fromMs === undefined || toMs === undefined || fromMs >= toMs || !zone) return undefined;
  return zone === utc ? { fromMs, toMs } : { fromMs, toMs, zone };
}

function msOf(text: string | null): number | undefined {
  return /^\d{1,15}$/.test(text ?? '') ? Number(text) : undefined;
}

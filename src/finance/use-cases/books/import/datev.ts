import type { DatevTerms, ImportTerms } from '../../../../base/values/accounting.ts';
import { type Period, periodName } from '../../../../base/values/period.ts';
import { utc } from '../../../../base/values/time-zone.ts';
import { decimalText } from '../../../../base/values/entry.ts';
import { ExportError } from '../source.ts';
import { datevColumns } from './datev-columns.ts';
import type { ImportJournal } from './sum-up.ts';

/**
 * A DATEV batch of postings (EXTF, header 700, Buchungsstapel 13) in Windows-1252: header, columns, a line for each debit and credit.
 * @throws ExportError if the period is not within one fiscal year, for which the batch has days and months only
 */
export function datevBatch(
  journals: readonly ImportJournal[],
  {
    period,
    terms,
    codeOf,
  }: { readonly period: Period; readonly terms: ImportTerms; codeOf(account: string): string },
): Buffer {
  const { datev, currency } = terms;
  if (!datev)
    throw new ExportError('--accounts has no [import.datev], which says the numbers of adviser and client');
  const lines = journals.flatMap(({ number, day, reason, lines: moves }) =>
    moves.map(({ debit, credit, cents }) => {
      const fields = new Map<string, string>([
        ['Umsatz (ohne Soll/Haben-Kz)', decimalText(cents, 2).replace('.', ',')],
        ['Soll/Haben-Kennzeichen', quoted('S')],
        ['WKZ Umsatz', quoted(currency)],
        ['Konto', codeOf(debit)],
        ['Gegenkonto (ohne BU-Schlüssel)', codeOf(credit)],
        ['Belegdatum', day.slice(8, 10) + day.slice(5, 7)],
        ['Belegfeld 1', quoted(number)],
        ['Buchungstext', quoted(`${reason} ${debit} / ${credit}`.slice(0, 60))],
        // the adviser may still change it
        ['Festschreibung', '0'],
      ]);
      return datevColumns.map((name) => fields.get(name) ?? '').join(';');
    }),
  );
  const text = [headerOf(period, datev, currency), datevColumns.join(';'), ...lines, ''].join('\r\n');
  return Buffer.from(text, 'latin1');
}

/** The 31 fields of the first line. It was made when the period ended, so that the same books have the same bytes. */
function headerOf({ fromMs, toMs, zone = utc }: Period, datev: DatevTerms, currency: string): string {
  const [first, last] = [zone.dayOf(fromMs), zone.dayOf(toMs - 1)];
  const [year, month] = [Number(first.slice(0, 4)), Number(first.slice(5, 7))];
  const startYear = month < datev.yearFromMonth ? year - 1 : year;
  const startMonth = String(datev.yearFromMonth).padStart(2, '0');
  if (last >= `${startYear + 1}-${startMonth}-01`)
    throw new ExportError(
      `a DATEV batch is of one fiscal year, which begins in month ${datev.yearFromMonth}: export its periods one by one`,
    );
  const name = `Tollbook ${periodName({ fromMs, toMs, zone })}`.slice(0, 30);
  return [
    [quoted('EXTF'), '700', '21', quoted('Buchungsstapel'), '13'],
    [new Date(toMs).toISOString().replaceAll(/\D/g, ''), '', quoted(''), quoted(''), quoted('')],
    [String(datev.consultant), String(datev.client), `${startYear}${startMonth}01`],
    [String(datev.accountDigits), compact(first), compact(last), quoted(name), quoted('')],
    ['1', '0', '0', quoted(currency), '', quoted(''), '', '', quoted(datev.chart ?? '')],
    ['', '', quoted(''), quoted('')],
  ]
    .flat()
    .join(';');
}

function compact(day: string): string {
  return day.replaceAll('-', '');
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

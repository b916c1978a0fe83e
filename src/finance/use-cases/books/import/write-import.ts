import type { Accounting } from '../../../../base/values/accounting.ts';
import type { ImportFormat } from '../../../../base/values/format.ts';
import type { Books } from '../books.ts';
import { ExportError } from '../source.ts';
import { datevBatch } from './datev.ts';
import { quickbooksJournals, xeroJournals } from './journal-lines.ts';
import { type ImportJournal, sumUp } from './sum-up.ts';

/**
 * The file that an accounting program imports. The same books, rates and accounts always give the same bytes.
 * @throws ExportError with all accounts that the program's chart does not have yet, rates and countries that are missing
 */
export async function* writeImport(
  books: Books,
  format: ImportFormat,
  { importTerms: terms, tax }: Accounting,
): AsyncGenerator<Buffer> {
  if (!terms)
    throw new ExportError('--accounts has no [import], which says the currency: such as currency = "EUR"');
  const { accountMap } = books;
  const journals = await sumUp(books, terms, tax);
  const digits = terms.datev?.accountDigits ?? 4;
  const isValid: (code: string) => boolean =
    format === 'datev'
      ? (code) => new RegExp(`^[1-9]\\d{${digits - 1},${digits}}$|^0\\d{${digits - 1}}$`).test(code)
      : () => true;
  const key = format === 'quickbooks' ? 'title' : 'code';
  const idOf = (account: string): string | undefined =>
    format === 'quickbooks' ? accountMap?.titleOf(account) : accountMap?.codeOf(account);
  requireIds(journals, idOf, isValid, format === 'datev' ? `${key} of ${digits} digits` : key);
  const given = (account: string): string => idOf(account) ?? '';
  switch (format) {
    case 'datev':
      return yield datevBatch(journals, { period: books.period, terms, codeOf: given });
    case 'xero':
      return yield Buffer.from(xeroJournals(journals, terms, given));
    case 'quickbooks':
      return yield Buffer.from(quickbooksJournals(journals, given));
  }
}

function requireIds(
  journals: readonly ImportJournal[],
  idOf: (account: string) => string | undefined,
  isValid: (id: string) => boolean,
  what: string,
): void {
  const used = journals.flatMap(({ lines }) => lines.flatMap(({ debit, credit }) => [debit, credit]));
  const missing = [...new Set(used)].toSorted().filter((account) => {
    const id = idOf(account);
    return id === undefined || !isValid(id);
  });
  if (missing.length === 0) return;
  throw new ExportError(
    `no file was written: in --accounts these accounts have no ${what}: ${missing.join(', ')}`,
  );
}

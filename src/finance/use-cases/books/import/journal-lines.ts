import type { ImportTerms } from '../../../../base/values/accounting.ts';
import { csvLine } from '../../../../base/values/csv-line.ts';
import { decimalText } from '../../../../base/values/entry.ts';
import { ExportError } from '../source.ts';
import type { ImportJournal } from './sum-up.ts';

/** What one journal leaves on an account, in cents: above 0 a debit. */
interface JournalLine {
  readonly account: string;
  readonly cents: bigint;
}

/** The lines of a journal, one for each account; they add up to 0. */
function linesOf({ lines }: ImportJournal): JournalLine[] {
  const sums = new Map<string, bigint>();
  for (const { debit, credit, cents } of lines) {
    sums.set(debit, (sums.get(debit) ?? 0n) + cents);
    sums.set(credit, (sums.get(credit) ?? 0n) - cents);
  }
  return [...sums].filter(([, cents]) => cents !== 0n).map(([account, cents]) => ({ account, cents }));
}

const xeroHeader = ['*Narration', '*Date', 'Description', '*AccountCode', '*TaxRate', '*Amount'];

/**
 * Xero's template of manual journals: the lines of one narration and date are one journal; an amount above 0 is a debit.
 * @throws ExportError without the name of a tax rate, which Xero requires
 */
export function xeroJournals(
  journals: readonly ImportJournal[],
  { xeroTaxRate }: ImportTerms,
  codeOf: (account: string) => string,
): string {
  if (xeroTaxRate === undefined)
    throw new ExportError(
      '--accounts has no import.xero_tax_rate, which Xero requires in every line: such as "Tax Exempt"',
    );
  const rows = journals.flatMap((journal) =>
    linesOf(journal).map(({ account, cents }) => {
      const [year, month, day] = journal.day.split('-');
      const texts = [`Tollbook ${journal.number} ${journal.reason}`, `${day}/${month}/${year}`, account];
      // a number is not a formula
      return `${csvLine([...texts, codeOf(account), xeroTaxRate]).trimEnd()},${decimalText(cents, 2)}\r\n`;
    }),
  );
  return [csvLine(xeroHeader), ...rows].join('');
}

const quickbooksHeader = ['JournalNo', 'JournalDate', 'AccountName', 'Debits', 'Credits', 'Description'];

/** The journal entries that QuickBooks Online imports: the lines of one number are one entry. */
export function quickbooksJournals(
  journals: readonly ImportJournal[],
  titleOf: (account: string) => string,
): string {
  const rows = journals.flatMap((journal) =>
    linesOf(journal).map(({ account, cents }) => {
      const [year, month, day] = journal.day.split('-');
      const amounts = cents > 0n ? [decimalText(cents, 2), ''] : ['', decimalText(-cents, 2)];
      const texts = [`${journal.reason} ${account}`];
      return csvLine([journal.number, `${month}/${day}/${year}`, titleOf(account), ...amounts, ...texts]);
    }),
  );
  return [csvLine(quickbooksHeader), ...rows].join('');
}

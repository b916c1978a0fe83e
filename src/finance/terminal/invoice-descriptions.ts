import { byName, type CommandDescription, text, textOr, texts } from '../../base/terminal/command.ts';
import { pubkey, source, valued } from './options.ts';

const { currency } = source;

const document = {
  customer: text('CUSTOMER', 'a wallet, or the name of a credit account'),
  format: textOr('FORMAT', 'page', 'page (HTML to print, without scripts), json'),
  out: text('FILE', 'where it is written; default: standard output'),
  ...valued,
  currency,
  pubkey,
};
const series = text('SERIES', 'of numbers, such as 2026');
const changed = 'the period is not as it was closed, or the events are not those that were sealed';

/** The commands of what customers get. */
export const invoiceCommands = {
  'invoices issue': {
    summary: 'issues a customer the invoice of a closed period, under the next number of a series',
    forms: ['2026-10 --customer CUSTOMER --series SERIES --by NAME'],
    options: {
      ...document,
      series,
      by: byName,
      accounts: text(
        'FILE',
        'with rates of tax and countries; default: the file that TOLLBOOK_ACCOUNTS names',
      ),
      'bill-to': texts("'LINE'", "a line of the customer's address, which the page shows and nothing keeps"),
    },
    notes: [
      'the ledger records number, amounts and the hash of the JSON: numbers neither repeat nor skip;',
      'the same command again gives the same invoice under its number',
    ],
    exits: { finding: changed },
  },
  'invoices statement': {
    isReading: true,
    summary: 'writes what you owed a customer in a closed period: opening, each entry, closing',
    forms: ['2026-10 --customer CUSTOMER'],
    options: document,
    notes: ['of sealed events only'],
    exits: { finding: changed },
  },
  'invoices list': {
    isReading: true,
    summary: 'lists the invoices of a series',
    forms: ['--series SERIES'],
    options: { series },
  },
} satisfies Readonly<Record<string, CommandDescription>>;

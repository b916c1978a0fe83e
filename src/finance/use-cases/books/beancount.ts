import { decimalText, type Balance, type Commodity } from '../../../base/values/entry.ts';
import { periodName, spanText } from '../../../base/values/period.ts';
import type { EntryPart } from './kept-books.ts';
import { type JournalPosting, type JournalStyle, entryTags } from './journal.ts';
import { ExportError } from './source.ts';

/** Beancount rounds decimals with more digits than this. */
const maxDigits = 28;

/** A journal that `bean-check` accepts by itself. Balances are asserted without tolerance. */
export const beancount: JournalStyle = {
  head: (period) =>
    `; Books of a Tollbook ledger, ${spanText(period)}, by the time of recording.\n` +
    `option "title" "Tollbook ${periodName(period)}"\n`,
  commodity: ({ name, network, asset, symbol, decimals }, { before }) =>
    `\n${before} commodity ${name}\n` + metadata({ network, asset, symbol }) + `  decimals: ${decimals}\n`,
  account: (account, { before }, code) => `${before} open ${account}\n${metadata({ code })}`,
  opening: (balances, { before, first }) =>
    `\n${before} * "Opening balances"\n${balances.map(posting).join('')}` +
    `\n${balances.map((balance) => (balance.isAsserted ? assertion(first, balance) : '')).join('')}`,
  unused: (balance, { first }) => assertion(first, balance),
  entry: (part, postings, day) =>
    `\n${day} * ${part.entry.counterparty === undefined ? '' : `${quoted(part.entry.counterparty)} `}${quoted(part.entry.category)}\n` +
    entryMetadata(part) +
    postings.map(posting).join(''),
  continued: (balances, { first }) => `\n${balances.map((balance) => assertion(first, balance)).join('')}`,
  price: ({ day, commodity, currency, text }) => `${day} price ${commodity} ${text} ${currency}\n`,
  closing: (balances, { after }) => `\n${balances.map((balance) => assertion(after, balance)).join('')}`,
};

function entryMetadata(part: EntryPart): string {
  const { seq, memo } = part.entry;
  return (seq === undefined ? '' : `  seq: ${seq}\n`) + metadata(entryTags(part, memo));
}

function metadata(values: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(values)
    .map(([key, value]) => (value === undefined ? '' : `  ${key}: ${quoted(value)}\n`))
    .join('');
}

function posting({ account, commodity, atoms }: JournalPosting): string {
  return `  ${account}  ${amount(atoms, commodity)} ${commodity.name}\n`;
}

function assertion(day: string, { account, commodity, atoms }: Balance): string {
  return `${day} balance ${account}  ${amount(atoms, commodity)} ~ 0 ${commodity.name}\n`;
}

function amount(atoms: bigint, { name, decimals }: Commodity): string {
  const text = decimalText(atoms, decimals);
  if (text.replace(/^-?0*\.?0*/, '').replace('.', '').length > maxDigits)
    throw new ExportError(
      `${text} ${name} has more than ${maxDigits} digits, which beancount would round. No file was written: use --format hledger`,
    );
  return text;
}

function quoted(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

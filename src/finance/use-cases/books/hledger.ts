import { type Balance, decimalText, type Commodity } from '../../../base/values/entry.ts';
import { spanText } from '../../../base/values/period.ts';
import type { EntryPart } from './kept-books.ts';
import { type JournalPosting, type JournalStyle, entryTags } from './journal.ts';

/** A journal that `hledger check --strict` accepts by itself. Balances are asserted. */
export const hledger: JournalStyle = {
  head: (period) =>
    `; Books of a Tollbook ledger, ${spanText(period)}, by the time of recording.\ndecimal-mark .\n`,
  commodity: ({ name, network, asset, symbol, decimals }) =>
    `\n; ${[symbol, network, asset, `${decimals} decimals`].filter((text) => text !== undefined).join(', ')}\ncommodity "${name}"\n`,
  account: (account, _, code) => `account ${account}${code === undefined ? '' : `  ; code:${code}`}\n`,
  opening: (balances, { before }) =>
    `\n${before} * Opening balances\n${balances.map((balance) => posting(balance, balance.isAsserted ? balance.atoms : undefined)).join('')}`,
  unused: (balance, { before }) => `${before} * Not used before\n${posting(balance, 0n)}`,
  entry: (part, postings, day) =>
    `\n${day} *${part.entry.seq === undefined ? '' : ` (${part.entry.seq})`} ${[part.entry.counterparty, part.entry.category].filter((text) => text !== undefined).join(' | ')}\n` +
    comment(part) +
    postings.map((one) => posting(one)).join(''),
  continued: (balances, { before }) => assertionsOf(`${before} * Balances of the journals before`, balances),
  closing: (balances, { last }) => assertionsOf(`${last} * Closing balances`, balances),
  price: ({ day, commodity, currency, text }) => `P ${day} "${commodity}" ${text} "${currency}"\n`,
};

function assertionsOf(title: string, balances: readonly Balance[]): string {
  const lines = balances.map((balance) => posting({ ...balance, atoms: 0n }, balance.atoms));
  return `\n${title}\n${lines.join('')}`;
}

/** Tags. Free text of operators is left out: hledger would read dates in comments. */
function comment(part: EntryPart): string {
  return Object.entries(entryTags(part))
    .map(([tag, value]) => (value === undefined ? '' : `    ; ${tag}:${value}\n`))
    .join('');
}

function posting({ account, commodity, atoms }: JournalPosting, asserted?: bigint): string {
  const assertion = asserted === undefined ? '' : ` = ${amount(asserted, commodity)}`;
  return `    ${account}  ${amount(atoms, commodity)}${assertion}\n`;
}

function amount(atoms: bigint, { name, decimals }: Commodity): string {
  return `${decimalText(atoms, decimals)} "${name}"`;
}

import type { AccountMap } from '../../../base/values/account-map.ts';
import { Balances, type Balance, type Commodity, decimalText } from '../../../base/values/entry.ts';
import { periodName, spanText } from '../../../base/values/period.ts';
import type { Books } from './books.ts';
import { csvField, csvLine } from '../../../base/values/csv-line.ts';

/** One account in one commodity over a period, in atoms: closing is opening and debits less credits. Above 0 is a debit. */
interface SummaryLine {
  readonly account: string;
  readonly commodity: Commodity;
  readonly opening: bigint;
  readonly debits: bigint;
  readonly credits: bigint;
  readonly closing: bigint;
}

/** Every account that had a balance or a movement in the period, sorted by account and commodity. */
async function summarize(books: Books): Promise<SummaryLine[]> {
  const opening = new Balances();
  const debits = new Balances();
  const credits = new Balances();
  let closing: readonly Balance[] = [];
  for await (const part of books.parts()) {
    if (part.kind === 'opening')
      for (const { account, commodity, atoms } of part.balances) opening.add(account, commodity, atoms);
    else if (part.kind === 'closing') closing = part.balances;
    else
      for (const { debit, credit, commodity, atoms } of part.entry.moves) {
        debits.add(debit, commodity, atoms);
        credits.add(credit, commodity, atoms);
      }
  }
  const lines = closing.map(({ account, commodity, atoms }) => ({
    account,
    commodity,
    opening: opening.of(account, commodity),
    debits: debits.of(account, commodity),
    credits: credits.of(account, commodity),
    closing: atoms,
  }));
  return lines.filter(({ opening: before, debits: in_, credits: out, closing: after }) =>
    [before, in_, out, after].some((atoms) => atoms !== 0n),
  );
}

const sums = ['opening', 'debits', 'credits', 'closing'] as const;

/** A header, then one line per account and commodity. */
export async function* summaryCsv(books: Books): AsyncGenerator<string> {
  const named = ['account', 'commodity', 'token', 'token_address', 'network', 'decimals'];
  const { accountMap } = books;
  yield csvLine([...named, ...sums, ...sums.map((sum) => `${sum}_atoms`), ...(accountMap ? ['code'] : [])]);
  for (const line of await summarize(books)) {
    const { account, commodity } = line;
    const { name, symbol, asset = '', network = '', decimals } = commodity;
    const texts = [account, name, symbol, asset, network, String(decimals)];
    const amounts = sums.map((sum) => decimalText(line[sum], decimals));
    // spreadsheets do not read a number as a formula, even if it begins with a minus
    const code = accountMap ? [csvField(accountMap.codeOf(account) ?? '')] : [];
    yield [csvLine(texts).trimEnd(), ...amounts, ...sums.map((sum) => line[sum]), ...code].join(',') + '\r\n';
  }
}

/** A page in Markdown: a table for each commodity. Its sums show that the books are balanced. */
export async function* summaryPage(books: Books): AsyncGenerator<string> {
  const { period, accountMap } = books;
  yield (
    `# Summary of the books: ${periodName(period)}\n\n` +
      `${capital(spanText(period))}, by the time of recording. Debits are positive, credits negative.\n`
  );
  const byCommodity = Map.groupBy(await summarize(books), ({ commodity }) => commodity);
  const ordered = [...byCommodity].toSorted(([a], [b]) => (a.name < b.name ? -1 : 1));
  if (ordered.length === 0) yield '\nNo account has a balance or a movement.\n';
  for (const [commodity, lines] of ordered) yield tableOf(commodity, lines, accountMap);
}

function tableOf(commodity: Commodity, lines: readonly SummaryLine[], map: AccountMap | undefined): string {
  const { name, symbol, network, asset, decimals } = commodity;
  const of = [symbol, network, asset, `${decimals} decimals`].filter((text) => text !== undefined);
  const row = (title: string, amountOf: (sum: (typeof sums)[number]) => bigint): string =>
    `| ${[title, ...sums.map((sum) => decimalText(amountOf(sum), decimals))].join(' | ')} |\n`;
  const total = (sum: (typeof sums)[number]): bigint => lines.reduce((all, line) => all + line[sum], 0n);
  return (
    `\n## ${name}\n\n${of.join(', ')}\n\n` +
    '| Account | Opening | Debits | Credits | Closing |\n|---|--:|--:|--:|--:|\n' +
    lines.map((line) => row(titleOf(line, map), (sum) => line[sum])).join('') +
    row('Sum', total)
  );
}

function titleOf({ account }: SummaryLine, map: AccountMap | undefined): string {
  const code = map?.codeOf(account);
  return code === undefined ? account : `${code} ${account}`;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

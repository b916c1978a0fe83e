import { execFile } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { openBooks } from '../../src/finance/use-cases/books/books.ts';
import { writeBooks } from '../../src/finance/use-cases/books/format.ts';
import { openDatabaseSource } from '../../src/finance/use-cases/books/source.ts';
import type { Period } from '../../src/base/values/period.ts';
import { packageEnvironment } from '../support/installed.ts';
import type { JournalTool } from '../support/journal-tools.ts';
import type { YearLedger } from './ledger.ts';

/** Writes the journal of a period for a tool. */
export async function writeJournal(
  ledger: YearLedger,
  period: Period,
  tool: JournalTool,
  file: string,
): Promise<void> {
  const books = await openBooks(await openDatabaseSource(ledger.pool), period);
  await pipeline(Readable.from(writeBooks(books, tool)), createWriteStream(file));
}

/** As text, since bean-query shows numbers with as many digits as most of them have. */
const query = 'SELECT account, currency, str(sum(number)) AS balance GROUP BY account, currency';
const hledgerQuery = ['balance', '--flat', '--no-total', '--layout=bare', '-O', 'csv'];
const commands = {
  hledger: (file: string) => ['hledger', '-f', file, ...hledgerQuery],
  beancount: (file: string) => ['bean-query', '-f', 'csv', file, query],
} as const;
const mostBytes = 1 << 28;

/** The balance of every account that is not zero, by the tool's own reading of a journal, as `account commodity`. */
export async function toolBalances(
  tool: JournalTool,
  file: string,
  decimals: (commodity: string) => number,
): Promise<Map<string, bigint>> {
  const [command = '', ...args] = commands[tool](file);
  const text = await new Promise<string>((resolve, reject) => {
    execFile(command, args, { env: packageEnvironment(), maxBuffer: mostBytes }, (error, stdout, stderr) =>
      error ? reject(new Error(`${error.message}\n${stderr}`)) : resolve(stdout),
    );
  });
  const balances = new Map<string, bigint>();
  for (const line of text.split(/\r?\n/).slice(1)) {
    const [account, commodity, number] = line.split(',').map((field) => field.replaceAll(/["\s]/g, ''));
    if (!account || !commodity || number === undefined) continue;
    const atoms = atomsOf(number, decimals(commodity));
    if (atoms !== 0n) balances.set(`${account} ${commodity}`, atoms);
  }
  return balances;
}

/** A decimal number, also with an exponent, as atoms; throws if it has more digits than its token. */
function atomsOf(text: string, decimals: number): bigint {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(?:Decimal\(')?(-?)(\d+)\.?(\d*)(?:E([+-]\d+))?(?:'\))?$/.exec(text) ?? [];
  const places = decimals - fraction.length + Number(exponent);
  const digits = BigInt(whole + fraction || 'none');
  const unit = 10n ** BigInt(Math.abs(places));
  if (places < 0 && digits % unit !== 0n) throw new Error(`${text} has more than ${decimals} decimals`);
  const atoms = places < 0 ? digits / unit : digits * unit;
  return sign === '-' ? -atoms : atoms;
}

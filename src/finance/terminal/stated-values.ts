import { readAccounting } from '../../base/config/accounting.ts';
import { processEnvironment } from '../../base/config/environment.ts';
import { ArgumentError, readGivenFile } from '../../base/terminal/arguments.ts';
import type { Accounting } from '../../base/values/accounting.ts';
import { type Rates, readRates } from '../../audit/rules/bookkeeping/rates.ts';

/** Values from the caller that the ledger does not have. */
export interface StatedValues {
  readonly rates: Rates | undefined;
  readonly accounting: Accounting | undefined;
}

type Given = Readonly<Partial<Record<'rates' | 'accounts', string | undefined>>>;

/**
 * The files of `--rates` and `--accounts`, by default those that TOLLBOOK_RATES and TOLLBOOK_ACCOUNTS name.
 * @throws ArgumentError or ConfigError with the lines that are wrong
 */
export async function readStatedValues(given: Given): Promise<StatedValues> {
  const { TOLLBOOK_RATES, TOLLBOOK_ACCOUNTS } = processEnvironment();
  const file = given.accounts ?? TOLLBOOK_ACCOUNTS;
  return {
    rates: await readRatesFile(given.rates ?? TOLLBOOK_RATES),
    accounting: file === undefined ? undefined : readAccounting(await readGivenFile('accounts', file), file),
  };
}

async function readRatesFile(file: string | undefined): Promise<Rates | undefined> {
  if (file === undefined) return undefined;
  const reading = readRates(await readGivenFile('rates', file));
  if (reading.kind === 'rates') return reading.rates;
  throw new ArgumentError(`--rates ${file}, line ${reading.line}: ${reading.words}`);
}

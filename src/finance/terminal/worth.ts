import type pg from 'pg';
import { ArgumentError } from '../../base/terminal/arguments.ts';
import { listTokens } from '../../payments/store/refunds.ts';
import { namesOfTokens } from '../../audit/rules/bookkeeping/commodity.ts';
import { findCurrency, unclearCurrency, type Valuation } from '../../audit/rules/bookkeeping/rates.ts';
import { worthText } from '../../audit/rules/bookkeeping/worth.ts';
import type { valued } from './options.ts';
import { readStatedValues } from './stated-values.ts';

type Given = Readonly<Partial<Record<keyof typeof valued, string | undefined>>>;

/**
 * The rates of a list, in one currency; undefined if there are none.
 * @throws ArgumentError if the file is wrong, or has several currencies and none is named
 */
export async function readValuation(given: Given): Promise<Valuation | undefined> {
  const { rates } = await readStatedValues({ rates: given.rates });
  if (!rates) {
    if (given['value-in'] !== undefined) throw new ArgumentError('--value-in goes with --rates');
    return undefined;
  }
  const currency = findCurrency(rates, given['value-in']);
  if (currency !== undefined) return { rates, currency };
  throw new ArgumentError(unclearCurrency(rates));
}

/** What an amount is worth on a day, as text; undefined if no rates are given. */
export type WorthOf = (
  money: {
    readonly network: string;
    readonly asset?: string;
    readonly symbol: string;
    readonly decimals: number;
    readonly amount: string | bigint;
  },
  day: string,
) => string | undefined;

/** Prepares the worth of what a list shows, by the names that the journals have for the tokens of this ledger. */
export async function openWorth(pool: pg.Pool, valuation: Valuation | undefined): Promise<WorthOf> {
  if (!valuation) return () => undefined;
  const nameOf = namesOfTokens(await listTokens(pool));
  return ({ amount, decimals, ...token }, day) =>
    worthText(BigInt(amount), { name: nameOf(token), decimals }, day, valuation);
}

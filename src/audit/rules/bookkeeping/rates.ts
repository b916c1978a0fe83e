import { isRealDay } from '../../../base/values/calendar-date.ts';
import type { Commodity } from '../../../base/values/entry.ts';

/** What one unit of a commodity was worth in a currency on a day, as somebody stated it. */
export interface Rate {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string;
  /** As journals name it, such as `USDC-84532`. */
  readonly commodity: string;
  /** The name of another commodity, such as `USD`. */
  readonly currency: string;
  /** As given: digits with at most one point. */
  readonly text: string;
}

/** The decimals of every amount that a rate gives. */
export const valueDecimals = 6;

const header = 'date,commodity,currency,rate';
const name = /^[A-Z][A-Z0-9-]{0,22}[A-Z0-9]$/;
const number = /^(?:0|[1-9]\d{0,17})(?:\.\d{1,18})?$/;

/** Stated rates. A rate holds from its day on, until the next one of its pair. */
export class Rates {
  /** By pair, the oldest first. */
  readonly #pairs: ReadonlyMap<string, readonly Rate[]>;
  readonly currencies: readonly string[];

  constructor(all: readonly Rate[]) {
    const pairs = Map.groupBy(
      all.toSorted((a, b) => (a.day < b.day ? -1 : 1)),
      ({ commodity, currency }) => `${commodity}/${currency}`,
    );
    this.#pairs = pairs;
    this.currencies = [...new Set(all.map(({ currency }) => currency))].toSorted();
  }

  /** The newest rate of a pair on a day or before it. */
  on(day: string, commodity: string, currency: string): Rate | undefined {
    return this.#pairs.get(`${commodity}/${currency}`)?.findLast((rate) => rate.day <= day);
  }

  /** The rates of a commodity from a day to another one, and the one that holds on the first of them; by currency, then by day. */
  of(commodity: string, fromDay: string, toDay: string): Rate[] {
    return this.currencies.flatMap((currency) => {
      const pair = this.#pairs.get(`${commodity}/${currency}`) ?? [];
      const first = this.on(fromDay, commodity, currency);
      return pair.filter(({ day }, at) => day <= toDay && at >= (first ? pair.indexOf(first) : 0));
    });
  }
}

/** The rates by which rows say their worth, in one of their currencies. */
export interface Valuation {
  readonly rates: Rates;
  readonly currency: string;
}

/** The currency in which values are said: the given one, or the only one; undefined if the rates do not have it, or several. */
export function findCurrency({ currencies }: Rates, given: string | undefined): string | undefined {
  const [only, another] = currencies;
  const chosen = given ?? (another === undefined ? only : undefined);
  return chosen !== undefined && currencies.includes(chosen) ? chosen : undefined;
}

/** Why {@link findCurrency} found none, in words. */
export function unclearCurrency({ currencies }: Rates): string {
  return `--rates has rates in ${currencies.join(', ')}: name one of them with --value-in`;
}

export type RatesReading =
  | { readonly kind: 'rates'; readonly rates: Rates }
  /** `line`: counted from 1. */
  | { readonly kind: 'problem'; readonly line: number; readonly words: string };

/** Reads a CSV of rates: `date,commodity,currency,rate`, in any order; fields may be in quotation marks. */
export function readRates(csv: string): RatesReading {
  const rates = new Map<string, Rate>();
  for (const [at, raw] of csv.split('\n').entries()) {
    const cells = raw.split(',').map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'));
    const text = cells.join(',');
    if (text === '' || (at === 0 && text === header)) continue;
    const [day = '', commodity = '', currency = '', rate = ''] = cells;
    const words = problemOf({ day, commodity, currency, text: rate }, cells.length);
    const key = `${day}/${commodity}/${currency}`;
    const isTwice = rates.has(key) && rates.get(key)?.text !== rate;
    if (words !== undefined || isTwice)
      return {
        kind: 'problem',
        line: at + 1,
        words: words ?? `another rate of ${commodity} stands for ${day} before it`,
      };
    rates.set(key, { day, commodity, currency, text: rate });
  }
  if (rates.size === 0) return { kind: 'problem', line: 1, words: 'there is no rate in it' };
  return { kind: 'rates', rates: new Rates([...rates.values()]) };
}

function problemOf({ day, commodity, currency, text }: Rate, fields: number): string | undefined {
  if (fields !== 4) return `it has ${fields} fields, and not the four of ${header}, with commas between them`;
  if (!isRealDay(day)) return `${JSON.stringify(day)} is not a date, such as 2026-10-31`;
  const wrong = [commodity, currency].find((one) => !name.test(one));
  if (wrong !== undefined)
    return `${JSON.stringify(wrong)} is not a commodity of the journals, such as USDC-8453 or USD`;
  if (commodity === currency) return `a rate of ${currency} in itself`;
  return number.test(text) && Number(text) > 0
    ? undefined
    : `${JSON.stringify(text)} is not a rate above 0, such as 0.9998`;
}

/** What atoms are worth at a rate, in units of 10^-{@link valueDecimals} of its currency, rounded half up. */
export function valueOf(
  atoms: bigint,
  { decimals }: Pick<Commodity, 'decimals'>,
  { text }: Pick<Rate, 'text'>,
): bigint {
  const [whole = '', part = ''] = text.split('.');
  const scaled = (atoms < 0n ? -atoms : atoms) * BigInt(whole + part) * 10n ** BigInt(valueDecimals);
  const unit = 10n ** BigInt(decimals + part.length);
  const value = (2n * scaled + unit) / (2n * unit);
  return atoms < 0n ? -value : value;
}

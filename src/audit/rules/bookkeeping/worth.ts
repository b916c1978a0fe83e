import { type Commodity, decimalText } from '../../../base/values/entry.ts';
import { type Valuation, valueDecimals, valueOf } from './rates.ts';

/** What atoms are worth on a day, `YYYY-MM-DD`, in micros of the valuation's currency; undefined without a rate. */
export function worthOn(
  atoms: bigint,
  commodity: Pick<Commodity, 'name' | 'decimals'>,
  day: string,
  valuation: Valuation,
): bigint | undefined {
  const text = rateOn(commodity, day, valuation);
  return text === undefined ? undefined : valueOf(atoms, commodity, { text });
}

/** The rate of a commodity on a day, which is `1` of the currency itself; undefined if none is stated. */
export function rateOn(
  { name }: Pick<Commodity, 'name'>,
  day: string,
  { rates, currency }: Valuation,
): string | undefined {
  return name === currency ? '1' : rates.on(day, name, currency)?.text;
}

/** Beside an amount: `3.259104 USD`, or that there is no rate. `name`: undefined if the journals may mean another token by it. */
export function worthText(
  atoms: bigint,
  { name, decimals }: { readonly name: string | undefined; readonly decimals: number },
  day: string,
  valuation: Valuation,
): string {
  const micros = name === undefined ? undefined : worthOn(atoms, { name, decimals }, day, valuation);
  return micros === undefined
    ? `no rate in ${valuation.currency}`
    : `${decimalText(micros, valueDecimals)} ${valuation.currency}`;
}

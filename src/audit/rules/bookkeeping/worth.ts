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

/** That no rate is stated for a day, as what is missing. */
export function missingRate({ name }: Pick<Commodity, 'name'>, currency: string, day: string): string {
  return `a rate of ${name} in ${currency} on ${day} or before`;
}

/** The micros of a cent. */
export const microsInCent = 10n ** BigInt(valueDecimals - 2);

/** An amount in units of `unit` of it, rounded half away from zero. */
export function roundTo(unit: bigint, amount: bigint): bigint {
  const whole = ((amount < 0n ? -amount : amount) + unit / 2n) / unit;
  return amount < 0n ? -whole : whole;
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

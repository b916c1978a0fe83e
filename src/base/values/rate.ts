import type { Rate } from './token.ts';

/** Most digits after the point of a rate that a source may give. */
const maxScale = 40;
/** Digits after the point of a rate that is not an exact decimal, such as the inverse of a price. */
const derivedScale = 36;
/** Fewer digits, and rounding would change the rate itself. */
const leastDerived = 10n ** 12n;
const beyondUint256 = 1n << 256n;
const bpsPerWhole = 10_000n;

/**
 * Reads a rate from its decimal text: digits with at most one point, as JSON writes a number without an exponent. Undefined for
 * zero, a sign, an exponent, `NaN`, more than 40 decimals, or a number above uint256.
 */
export function parseRate(text: string): Rate | undefined {
  const match = /^(0|[1-9]\d{0,77})(?:\.(\d{1,40}))?$/.exec(text);
  if (!match) return undefined;
  const fraction = match[2] ?? '';
  return exactRate(BigInt(`${match[1] ?? ''}${fraction}`), fraction.length);
}

/** `numerator / 10^scale` without trailing zeros; undefined if it is not above zero, or not a rate that can be used. */
export function exactRate(numerator: bigint, scale: number): Rate | undefined {
  if (numerator <= 0n) return undefined;
  let [digits, left] = [numerator, scale];
  while (left > 0 && digits % 10n === 0n) {
    digits /= 10n;
    left -= 1;
  }
  return left > maxScale || digits >= beyondUint256 * 10n ** BigInt(left)
    ? undefined
    : { numerator: digits, scale: left };
}

/**
 * A fraction as a rate with at most 36 decimals, rounded up: rounding down would sell below price. Undefined also where rounding
 * leaves fewer than 13 digits.
 */
export function rateOfFraction(numerator: bigint, denominator: bigint): Rate | undefined {
  if (numerator <= 0n || denominator <= 0n) return undefined;
  const scaled = numerator * 10n ** BigInt(derivedScale);
  const quotient = scaled / denominator;
  if (quotient * denominator === scaled) return exactRate(quotient, derivedScale);
  return quotient < leastDerived ? undefined : exactRate(quotient + 1n, derivedScale);
}

/** Native units for a token, as tokens for a native unit. */
export function inverseRate({ numerator, scale }: Rate): Rate | undefined {
  return rateOfFraction(10n ** BigInt(scale), numerator);
}

/** The rate as a decimal string without an exponent or trailing zeros: one text for one rate. */
export function rateText(rate: Rate): string {
  const { numerator, scale } = exactRate(rate.numerator, rate.scale) ?? rate;
  const digits = String(numerator).padStart(scale + 1, '0');
  return scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

export function compareRates(a: Rate, b: Rate): number {
  const difference = a.numerator * 10n ** BigInt(b.scale) - b.numerator * 10n ** BigInt(a.scale);
  return difference > 0n ? 1 : Number(difference < 0n) * -1;
}

/** The middle one, or exactly between the two in the middle. Undefined for no rates. */
export function medianRate(rates: readonly Rate[]): Rate | undefined {
  const sorted = rates.toSorted(compareRates);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  if (!low || !high) return undefined;
  const scale = Math.max(low.scale, high.scale);
  const sum = [low, high].reduce(
    (total, rate) => total + rate.numerator * 10n ** BigInt(scale - rate.scale),
    0n,
  );
  // half of a decimal has at most one digit more
  return exactRate(sum * 5n, scale + 1) ?? rateOfFraction(sum, 2n * 10n ** BigInt(scale));
}

/** Whether a rate differs from another one by at most so many hundredths of a per cent of that. */
export function isWithinBps(rate: Rate, of: Rate, bps: number): boolean {
  const [a, b] = [rate.numerator * 10n ** BigInt(of.scale), of.numerator * 10n ** BigInt(rate.scale)];
  return (a > b ? a - b : b - a) * bpsPerWhole <= b * BigInt(bps);
}

/** How far a rate is above another one, as a person reads it: `+0.3125 %`, cut off after four decimals. */
export function deviationText(rate: Rate, of: Rate): string {
  const [a, b] = [rate.numerator * 10n ** BigInt(of.scale), of.numerator * 10n ** BigInt(rate.scale)];
  const millionths = ((a > b ? a - b : b - a) * 1_000_000n) / b;
  const digits = String(millionths).padStart(5, '0');
  return `${a < b ? '-' : '+'}${digits.slice(0, -4)}.${digits.slice(-4)} %`;
}

import { readAnswerPrice } from '../../base/values/answer-price.ts';
import type { JobPrice } from '../../base/values/amount.ts';

/** Why an answer does not say a price that can be charged, for programs. */
export type UnusablePrice =
  | 'price_missing'
  | 'price_repeated'
  | 'price_malformed'
  | 'price_in_another_unit'
  | 'price_above_offer';

/**
 * How many atoms of a payment an answer has used: the same share of the signed amount as its price is of the quoted one, rounded up. 0 if
 * it costs nothing.
 * @param values those of the header that says the price: `0.013 USD`, or wei as digits, as the quoted price is
 */
export function usedAtoms(
  values: readonly string[],
  quoted: JobPrice,
  signedAtoms: bigint,
): bigint | UnusablePrice {
  const [text, another] = values;
  if (text === undefined) return 'price_missing';
  if (another !== undefined) return 'price_repeated';
  const price = readAnswerPrice(text);
  if (!price) return 'price_malformed';
  if (price.inUsd !== quoted.inUsd) return 'price_in_another_unit';
  if (price.wei > quoted.wei) return 'price_above_offer';
  return (signedAtoms * price.wei + quoted.wei - 1n) / quoted.wei;
}

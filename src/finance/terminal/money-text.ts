import { decimalText } from '../../base/values/entry.ts';

/** An amount in decimals, and in the atoms of a transfer: `3.264000 USDC (3264000 atoms)`. */
export function moneyText({
  amount,
  symbol,
  decimals,
}: {
  readonly amount: string | bigint;
  readonly symbol: string;
  readonly decimals: number;
}): string {
  return `${decimalText(BigInt(amount), decimals)} ${symbol} (${amount} atoms)`;
}

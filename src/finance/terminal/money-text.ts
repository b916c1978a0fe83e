import { decimalText } from '../../base/values/entry.ts';

/** An amount in decimals, and in the atoms of a transfer: `3.264000 USDC (3264000 atoms)`; with its worth if that is given. */
export function moneyText(
  {
    amount,
    symbol,
    decimals,
  }: {
    readonly amount: string | bigint;
    readonly symbol: string;
    readonly decimals: number;
  },
  worth?: string,
): string {
  const beside = worth === undefined ? '' : `; ${worth}`;
  return `${decimalText(BigInt(amount), decimals)} ${symbol} (${amount} atoms${beside})`;
}

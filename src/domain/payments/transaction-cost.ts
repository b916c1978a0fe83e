/** What a transaction is sent for. `authorization` lands a spend, `claim` pays it out. */
export const costPurposes = ['refund', 'sweep', 'transfer', 'authorization', 'claim', 'anchor'] as const;
export type CostPurpose = (typeof costPurposes)[number];

/** What a transaction cost its sender, in wei: its gas, and what a rollup charges beside it for its place on the chain below. */
export function costWei({
  gas_used,
  gas_price_wei,
  l1_fee_wei = '0',
}: {
  readonly gas_used: string;
  readonly gas_price_wei: string;
  readonly l1_fee_wei?: string | undefined;
}): bigint {
  return BigInt(gas_used) * BigInt(gas_price_wei) + BigInt(l1_fee_wei);
}

/** The stream is named by the transaction, so its cost is recorded once, by whichever command or gateway comes first. */
export function costStream(chainId: number, transaction: string): string {
  return `cost:${chainId}:${transaction}`;
}

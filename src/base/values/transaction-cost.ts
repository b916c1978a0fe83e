/** What a transaction is sent for. `authorization` lands a spend, `claim` pays it out. */
export const costPurposes = ['refund', 'sweep', 'transfer', 'authorization', 'claim', 'anchor'] as const;
export type CostPurpose = (typeof costPurposes)[number];

const termNames = [
  'network',
  'transaction',
  'purpose',
  'payer',
  'symbol',
  'gas_used',
  'gas_price_wei',
  'l1_fee_wei',
] as const;

/** Which transaction a record is of, who paid for it, and how much. */
type CostTerms<Data extends object> = Pick<Data, Extract<keyof Data, (typeof termNames)[number]>>;

/** What a reversal repeats of the record that it takes back. */
export function costTerms<Data extends object>(data: Data): CostTerms<Data> {
  const names: readonly string[] = termNames;
  return Object.fromEntries(Object.entries(data).filter(([name]) => names.includes(name))) as CostTerms<Data>;
}

/** A transaction's cost for its sender, in wei: its gas, and a rollup's fee for the data on the chain below. */
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

/** The stream is named by the transaction, so that one record of its cost stands, by whichever command or gateway comes first. */
export function costStream(chainId: number, transaction: string): string {
  return `cost:${chainId}:${transaction}`;
}

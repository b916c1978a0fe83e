import type { Constants } from './constants.ts';
import { chainIdOf, type Hex } from '../values/primitives.ts';
import { rpcUrlOf } from './networks.ts';
import { readPrivateKey } from './private-key.ts';
import type { Reading } from './reading.ts';
import { secret } from './secret-source.ts';
import { type ConfigOf, readTable } from './table.ts';
import { address, decimal, network, serviceId, Wrong } from './values.ts';

const atoms = decimal('1000000', (raw) =>
  /^[1-9]\d{0,77}$/.test(raw) && BigInt(raw) < 1n << 256n
    ? BigInt(raw)
    : new Wrong('must be atoms of the token, above 0 and below 2^256, such as "1000000"'),
);

const exposure = decimal('0', (raw) =>
  /^(?:0|[1-9]\d{0,77})$/.test(raw) && BigInt(raw) < 1n << 256n
    ? BigInt(raw)
    : new Wrong('must be atoms of the token, below 2^256; "0" for none'),
);

const feeWei = decimal('100000000000', (raw) =>
  /^[1-9]\d{0,17}$/.test(raw)
    ? BigInt(raw)
    : new Wrong('must be wei per unit of gas, above 0, such as "100000000000"'),
);

export const spendShape = {
  network: network.describe('Its chain'),
  contract: address.describe('The prepaid contract'),
  token: address.describe('The accepted token'),
  operator_key: secret.describe('Private key that pays the gas'),
  recipient: address.optional().describe('Who gets the tokens; default: the operator'),
  service_id: serviceId.describe('Service that spends must name'),
  min_charge: atoms.describe('Smallest spend, in atoms'),
  max_spend: atoms.describe('Largest spend, in atoms'),
  atoms_per_unit: atoms.describe('Atoms that one unit of the currency is worth'),
  atoms_per_native_unit: atoms.describe('Atoms that 10^18 wei of gas are worth'),
  max_fee_per_gas_wei: feeWei.default(100_000_000_000n).describe('Highest price of a unit of gas'),
  exposure: exposure
    .default(0n)
    .describe('Atoms that an account may spend before they land: your possible loss'),
} as const;

type SpendTimes = Constants['spend'];

/** Payment by signed spends of the prepaid contract. Amounts are the token's atoms. */
export interface SpendConfig extends ConfigOf<typeof spendShape>, SpendTimes {
  readonly chainId: number;
  /** Of the network. */
  readonly rpcUrl: string;
  /** The operator's private key: lands spends and pays out earned ones. */
  readonly operatorKey: Hex;
}

/** Reads `[spend]` and the operator's key; undefined if the table is missing, or after a report. */
export async function readSpend(raw: unknown, reading: Reading): Promise<SpendConfig | undefined> {
  if (raw === undefined) return undefined;
  const { report } = reading;
  const table = readTable(spendShape, raw, ['spend'], report);
  const missing = 'is missing: a key lands the spends';
  const operatorKey = await readPrivateKey(table, 'operator_key', missing, reading);
  const { at, whole } = table;
  const { minCharge, maxSpend, exposure: exposed = 0n } = table.values;
  if (minCharge !== undefined && maxSpend !== undefined && maxSpend < minCharge)
    report.mistake([...at, 'max_spend'], `must not be below min_charge (${minCharge})`);
  if (minCharge !== undefined && exposed > 0n && exposed < minCharge)
    report.mistake([...at, 'exposure'], `would never apply: no spend is below min_charge (${minCharge})`);
  const chainId = whole && chainIdOf(whole.network);
  const rpcUrl = rpcUrlOf(table.values.network, [...at, 'network'], reading);
  if (!whole || chainId === undefined || rpcUrl === undefined || !operatorKey) return undefined;
  return { ...whole, ...reading.constants.spend, chainId, rpcUrl, operatorKey };
}

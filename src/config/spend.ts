import { chainIdOf, type Hex } from '../domain/values/primitives.ts';
import type { SpendConfig } from './config.ts';
import type { Path } from './mistakes.ts';
import { readPrivateKey } from './private-key.ts';
import type { Reading } from './reading.ts';
import { readTable } from './table.ts';
import { rpcUrl } from './urls.ts';
import {
  address,
  decimal,
  filePath,
  network,
  serviceId,
  variableName,
  wholeNumber,
  Wrong,
} from './values.ts';

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

const shape = {
  network,
  rpc_url: rpcUrl,
  contract: address,
  token: address,
  operator_key_env: variableName.optional(),
  operator_key_file: filePath.optional(),
  recipient: address.optional(),
  service_id: serviceId,
  min_charge: atoms,
  max_spend: atoms,
  atoms_per_unit: atoms,
  claim_margin_secs: wholeNumber(10, 86_400).default(300),
  authorize_timeout_ms: wholeNumber(100, 300_000).default(30_000),
  nonce_wait_ms: wholeNumber(0, 60_000).default(5_000),
  exposure: exposure.default(0n),
} as const;

const at: Path = ['spend'];

/** Reads `[spend]` and the operator's key; undefined where it is not there, or after a report. */
export async function readSpend(raw: unknown, reading: Reading): Promise<SpendConfig | undefined> {
  if (raw === undefined) return undefined;
  const { report } = reading;
  const { whole, values } = readTable(shape, raw, at, report);
  const operatorKey = await readOperatorKey(values, reading);
  const { min_charge: least, max_spend: most } = values;
  if (least !== undefined && most !== undefined && most < least)
    report.mistake([...at, 'max_spend'], `must not be below min_charge (${least})`);
  const exposed = values.exposure ?? 0n;
  if (least !== undefined && exposed > 0n && exposed < least)
    report.mistake([...at, 'exposure'], `would never apply: no spend is below min_charge (${least})`);
  const chainId = whole && chainIdOf(whole.network);
  if (!whole || chainId === undefined || !operatorKey) return undefined;
  return {
    network: whole.network,
    chainId,
    rpcUrl: whole.rpc_url,
    contract: whole.contract,
    token: whole.token,
    operatorKey,
    recipient: whole.recipient,
    serviceId: whole.service_id,
    minCharge: whole.min_charge,
    maxSpend: whole.max_spend,
    atomsPerUnit: whole.atoms_per_unit,
    claimMarginSecs: whole.claim_margin_secs,
    authorizeTimeoutMs: whole.authorize_timeout_ms,
    nonceWaitMs: whole.nonce_wait_ms,
    exposure: whole.exposure,
  };
}

function readOperatorKey(
  values: { readonly operator_key_env?: string | undefined; readonly operator_key_file?: string | undefined },
  reading: Reading,
): Promise<Hex | undefined> {
  const { operator_key_env: envName, operator_key_file: file } = values;
  const place = { at, envKey: 'operator_key_env', envName, fileKey: 'operator_key_file', filePath: file };
  return readPrivateKey(place, 'is missing: spends are landed with a key', reading);
}

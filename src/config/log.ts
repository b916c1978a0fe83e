import { originPattern, parseSeed } from '../domain/log/checkpoint.ts';
import { chainIdOf } from '../domain/values/primitives.ts';
import { besideConfig } from './files.ts';
import type { AnchorConfig, LogConfig } from './config.ts';
import { readPrivateKey } from './private-key.ts';
import type { Reading } from './reading.ts';
import { readSecret } from './secrets.ts';
import { readTable, readTables, type Table } from './table.ts';
import { rpcUrl, secureBaseUrl as endpointUrl, webhookUrl } from './urls.ts';
import { address, filePath, matching, network, oneOf, variableName, wholeNumber } from './values.ts';

const minSeedChars = 43;
const minSecretChars = 16;

const logShape = {
  origin: matching(originPattern, 'must name the log: visible ASCII without "+", such as "jobs.example/log"'),
  key_env: variableName.optional(),
  key_file: filePath.optional(),
  seal_every_ms: wholeNumber(10, 3_600_000).default(1_000),
  seal_every_events: wholeNumber(1, 100_000).default(10_000),
} as const;

const bucketName = matching(
  /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
  'must be a bucket: 3 to 63 of a-z, 0-9, "." and "-"',
);
const keyText = matching(/^[!-~]{1,256}$/, 'must be visible ASCII');

const anchorShape = {
  kind: oneOf(['folder', 's3', 'webhook', 'chain']),
  name: matching(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"').optional(),
  every_ms: wholeNumber(10, 86_400_000).optional(),
  folder: filePath.optional(),
  url: webhookUrl.optional(),
  endpoint: endpointUrl.optional(),
  bucket: bucketName.optional(),
  prefix: matching(/^[A-Za-z0-9._/-]{0,200}$/, 'must be of A-Z, a-z, 0-9, ".", "_", "/" and "-"').default(''),
  region: matching(/^[a-z0-9-]{1,64}$/, 'must be of a-z, 0-9 and "-"').default('us-east-1'),
  access_key_id: keyText.optional(),
  secret_env: variableName.optional(),
  secret_file: filePath.optional(),
  network: network.optional(),
  rpc_url: rpcUrl.optional(),
  contract: address.optional(),
  key_env: variableName.optional(),
  key_file: filePath.optional(),
} as const;

const defaultEveryMs = 10_000;
const defaultChainMs = 3_600_000;

type AnchorTable = Table<typeof anchorShape>;

/** What each kind needs, and what it may have beside. */
const keysOf = {
  folder: { needs: ['folder'], takes: [] },
  webhook: { needs: ['url'], takes: ['secret_env', 'secret_file'] },
  s3: {
    needs: ['endpoint', 'bucket', 'access_key_id'],
    takes: ['prefix', 'region', 'secret_env', 'secret_file'],
  },
  chain: { needs: ['network', 'rpc_url', 'contract'], takes: ['key_env', 'key_file'] },
} as const satisfies Record<
  string,
  { needs: readonly (keyof typeof anchorShape)[]; takes: readonly (keyof typeof anchorShape)[] }
>;

/** Reads `[log]`, its key and its anchors; undefined where there is none, or after a report. */
export async function readLog(raw: unknown, reading: Reading): Promise<LogConfig | undefined> {
  if (raw === undefined) return undefined;
  const { anchors: rawAnchors, ...rest }: Record<string, unknown> =
    typeof raw === 'object' && raw !== null && !Array.isArray(raw) ? { ...raw } : {};
  const isTable = typeof raw === 'object' && raw !== null && !Array.isArray(raw);
  const { at, values, whole, names } = readTable(logShape, isTable ? rest : raw, ['log'], reading.report);
  if (!names('key_env') && !names('key_file'))
    reading.report.mistake(
      [...at, 'key_env'],
      'is missing: name it, or key_file; `tollbook log key` makes one',
    );
  const text = await readSecret(
    {
      at,
      envKey: 'key_env',
      envName: values.key_env,
      fileKey: 'key_file',
      filePath: values.key_file,
      minChars: minSeedChars,
    },
    reading,
  );
  const seed = text === undefined ? undefined : parseSeed(text);
  if (text !== undefined && !seed)
    reading.report.mistake(at, 'its key is not an Ed25519 seed: 32 bytes in hex or base64');
  const anchors = await readAnchors(rawAnchors, reading);
  if (!whole || !seed) return undefined;
  return {
    origin: whole.origin,
    seedHex: seed.toString('hex'),
    sealEveryMs: whole.seal_every_ms,
    sealEveryEvents: whole.seal_every_events,
    anchors,
  };
}

async function readAnchors(raw: unknown, reading: Reading): Promise<AnchorConfig[]> {
  const anchors: AnchorConfig[] = [];
  const tables = readTables(anchorShape, raw, ['log', 'anchors'], reading.report);
  const taken = new Set<string>();
  for (const [index, table] of tables.entries()) {
    const name = table.values.name ?? `anchor-${index + 1}`;
    if (taken.has(name)) reading.report.mistake([...table.at, 'name'], `"${name}" names another anchor too`);
    taken.add(name);
    const anchor = await readAnchor(table, name, reading);
    if (anchor) anchors.push(anchor);
  }
  return anchors;
}

async function readAnchor(
  table: AnchorTable,
  name: string,
  reading: Reading,
): Promise<AnchorConfig | undefined> {
  checkKeys(table, reading);
  const { at, values, whole } = table;
  if (values.kind === 'chain') return readChainAnchor(table, name, reading);
  const secret = await readSecret(
    {
      at,
      envKey: 'secret_env',
      envName: values.secret_env,
      fileKey: 'secret_file',
      filePath: values.secret_file,
      minChars: minSecretChars,
    },
    reading,
  );
  if (!whole) return undefined;
  const common = { name, everyMs: whole.every_ms ?? defaultEveryMs };
  const { kind, folder, url, endpoint, bucket, access_key_id: accessKeyId, prefix, region } = whole;
  if (kind === 'folder' && folder !== undefined)
    return { ...common, kind, folder: besideConfig(reading.file, folder) };
  if (kind === 'webhook' && url !== undefined)
    return { ...common, kind, url, ...(secret !== undefined && { secret }) };
  if (
    kind === 's3' &&
    endpoint !== undefined &&
    bucket !== undefined &&
    accessKeyId !== undefined &&
    secret !== undefined
  )
    return { ...common, kind, endpoint, bucket, prefix, region, accessKeyId, secretKey: secret };
  return undefined;
}

/** Each of its checkpoints costs a transaction. */
async function readChainAnchor(
  { at, values, whole }: AnchorTable,
  name: string,
  reading: Reading,
): Promise<AnchorConfig | undefined> {
  const privateKey = await readPrivateKey(
    {
      at,
      envKey: 'key_env',
      envName: values.key_env,
      fileKey: 'key_file',
      filePath: values.key_file,
    },
    'is missing: name it, or key_file; checkpoints go to the chain in transactions',
    reading,
  );
  const { network: chain, rpc_url: rpc, contract, every_ms: everyMs = defaultChainMs } = whole ?? {};
  const chainId = chain && chainIdOf(chain);
  if (!chain || !chainId || !rpc || !contract || !privateKey) return undefined;
  return { name, everyMs, kind: 'chain', network: chain, chainId, rpcUrl: rpc, contract, privateKey };
}

function checkKeys({ at, values, names }: AnchorTable, { report }: Reading): void {
  if (values.kind === undefined) return;
  const { needs, takes } = keysOf[values.kind];
  for (const key of needs)
    if (!names(key)) report.mistake([...at, key], `is missing: ${values.kind} needs it`);
  if (values.kind === 's3' && !names('secret_env') && !names('secret_file'))
    report.mistake([...at, 'secret_env'], 'is missing: name it, or secret_file');
  const known = new Set<string>(['kind', 'name', 'every_ms', ...needs, ...takes]);
  for (const key of Object.keys(anchorShape) as (keyof typeof anchorShape)[])
    if (names(key) && !known.has(key))
      report.mistake([...at, key], `would be ignored: ${values.kind} has none`);
}

import { mapSecrets, type RotatingSecret } from '../values/rotating-secret.ts';
import { originPattern, parseSeed } from '../values/log/checkpoint.ts';
import { type Address, type Caip2, chainIdOf, type Hex } from '../values/primitives.ts';
import { besideConfig } from './files.ts';
import { bucketShape, minBucketSecretChars } from './bucket.ts';
import { readPrivateKey } from './private-key.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { rotatingSecret, secret } from './secret-source.ts';
import { readRotatingSecret, readSecret } from './secrets.ts';
import { type ConfigOf, readTable, readTables, type Table } from './table.ts';
import { rpcUrl, webhookUrl } from './urls.ts';
import { address, filePath, matching, network, oneOf, wholeNumber } from './values.ts';
import { z } from 'zod';

const minSeedChars = 43;

export const logShape = {
  origin: matching(originPattern, 'must name the log: visible ASCII without "+", such as "jobs.example/log"'),
  key: rotatingSecret,
  seal_every_ms: wholeNumber(10, 3_600_000).default(1_000),
  seal_every_events: wholeNumber(1, 100_000).default(10_000),
  anchors: z.unknown(),
} as const;

const anchorShape = {
  kind: oneOf(['folder', 's3', 'webhook', 'chain']),
  name: matching(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"').optional(),
  every_ms: wholeNumber(10, 86_400_000).optional(),
  folder: filePath.optional(),
  url: webhookUrl.optional(),
  ...bucketShape,
  network: network.optional(),
  rpc_url: rpcUrl.optional(),
  contract: address.optional(),
  key: secret,
} as const;

const defaultEveryMs = 10_000;
const defaultChainMs = 3_600_000;

type AnchorTable = Table<typeof anchorShape>;

/** The tamper-evident log over the ledger. */
export interface LogConfig extends Omit<ConfigOf<typeof logShape>, 'anchors'> {
  /** The Ed25519 seeds in hex. Both sign, so that those who know one of the keys can verify. */
  readonly seeds: RotatingSecret;
  readonly anchors: readonly AnchorConfig[];
}

/** Where checkpoints are copied to, at most once in `everyMs`; names are unique. */
export type AnchorConfig = { readonly name: string; readonly everyMs: number } & (
  | { readonly kind: 'folder'; readonly folder: string }
  | { readonly kind: 'webhook'; readonly url: string; readonly secret?: string }
  | {
      readonly kind: 's3';
      readonly endpoint: string;
      readonly bucket: string;
      readonly prefix: string;
      readonly region: string;
      readonly accessKeyId: string;
      readonly secretKey: string;
    }
  | {
      readonly kind: 'chain';
      readonly network: Caip2;
      readonly chainId: number;
      readonly rpcUrl: string;
      /** A CheckpointAnchor. */
      readonly contract: Address;
      readonly privateKey: Hex;
    }
);

/** The keys that each kind needs, and those that it may have besides. */
const keysOf = {
  folder: { needs: ['folder'], takes: [] },
  webhook: { needs: ['url'], takes: ['secret'] },
  s3: { needs: ['endpoint', 'bucket', 'access_key_id', 'secret'], takes: ['prefix', 'region'] },
  chain: { needs: ['network', 'rpc_url', 'contract'], takes: ['key'] },
} as const satisfies Record<
  string,
  { needs: readonly (keyof typeof anchorShape)[]; takes: readonly (keyof typeof anchorShape)[] }
>;

/** Reads `[log]`, its key and its anchors; undefined where the table is missing, or after a report. */
export async function readLog(raw: unknown, reading: Reading): Promise<LogConfig | undefined> {
  if (raw === undefined) return undefined;
  const table = readTable(logShape, raw, ['log'], reading.report);
  const missing = 'is missing: say where it is; `tollbook log key` makes one';
  const texts = await readRotatingSecret(table, 'key', { minChars: minSeedChars, missing }, reading);
  const seeds = readSeeds(texts, table.at, reading);
  const anchors = await readAnchors(table.values.anchors, reading);
  return table.whole && seeds && { ...table.whole, seeds, anchors };
}

function readSeeds(
  texts: RotatingSecret | undefined,
  at: Path,
  { report }: Reading,
): RotatingSecret | undefined {
  if (!texts) return undefined;
  const seeds = mapSecrets(texts, (text) => parseSeed(text)?.toString('hex'));
  const [inUse, ...accepted] = seeds.filter((seed) => seed !== undefined);
  if (inUse !== undefined && accepted.length === texts.length - 1) return [inUse, ...accepted];
  const which = seeds[0] === undefined ? 'key' : 'second key';
  report.mistake([...at, 'key'], `its ${which} is not an Ed25519 seed: 32 bytes in hex or base64`);
  return undefined;
}

async function readAnchors(raw: unknown, reading: Reading): Promise<AnchorConfig[]> {
  const anchors: AnchorConfig[] = [];
  const tables = readTables(anchorShape, raw, ['log', 'anchors'], reading.report);
  const taken = new Set<string>();
  for (const [index, table] of tables.entries()) {
    const name = table.values.name ?? `anchor-${index + 1}`;
    if (taken.has(name))
      reading.report.mistake([...table.at, 'name'], `"${name}" is the name of another anchor too`);
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
  const { values, whole } = table;
  if (values.kind === 'chain') return readChainAnchor(table, name, reading);
  const signing = await readSecret(table, 'secret', { minChars: minBucketSecretChars }, reading);
  if (!whole) return undefined;
  const common = { name, everyMs: whole.everyMs ?? defaultEveryMs };
  const { kind, folder, url, endpoint, bucket, accessKeyId, prefix, region } = whole;
  if (kind === 'folder' && folder !== undefined)
    return { ...common, kind, folder: besideConfig(reading.file, folder) };
  if (kind === 'webhook' && url !== undefined)
    return { ...common, kind, url, ...(signing !== undefined && { secret: signing }) };
  if (
    kind === 's3' &&
    endpoint !== undefined &&
    bucket !== undefined &&
    accessKeyId !== undefined &&
    signing !== undefined
  )
    return { ...common, kind, endpoint, bucket, prefix, region, accessKeyId, secretKey: signing };
  return undefined;
}

/** Each checkpoint on a chain costs a transaction. */
async function readChainAnchor(
  table: AnchorTable,
  name: string,
  reading: Reading,
): Promise<AnchorConfig | undefined> {
  const missing = 'is missing: a key signs the transactions with the checkpoints';
  const privateKey = await readPrivateKey(table, 'key', missing, reading);
  const { network: chain, rpcUrl: rpc, contract, everyMs = defaultChainMs } = table.whole ?? {};
  const chainId = chain && chainIdOf(chain);
  if (!chain || !chainId || !rpc || !contract || !privateKey) return undefined;
  return { name, everyMs, kind: 'chain', network: chain, chainId, rpcUrl: rpc, contract, privateKey };
}

function checkKeys({ at, values, names }: AnchorTable, { report }: Reading): void {
  if (values.kind === undefined) return;
  const { needs, takes } = keysOf[values.kind];
  for (const key of needs)
    if (!names(key)) report.mistake([...at, key], `is missing: ${values.kind} needs it`);
  const known = new Set<string>(['kind', 'name', 'every_ms', ...needs, ...takes]);
  for (const key of Object.keys(anchorShape) as (keyof typeof anchorShape)[])
    if (names(key) && !known.has(key))
      report.mistake([...at, key], `would be ignored: ${values.kind} has none`);
}

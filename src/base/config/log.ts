import { mapSecrets, type RotatingSecret } from '../values/rotating-secret.ts';
import {
  CheckpointError,
  type NoteVerifier,
  originPattern,
  parseSeed,
  parseVerifierKey,
  verifierKeyPattern,
} from '../values/log/checkpoint.ts';
import { type Address, type Caip2, chainIdOf, type Hex } from '../values/primitives.ts';
import type { Constants } from './constants.ts';
import { besideConfig } from './files.ts';
import { type Bucket, minBucketSecretChars, placeShape, readBucket, readBucketKey } from './bucket.ts';
import { rpcUrlOf } from './networks.ts';
import { readPrivateKey } from './private-key.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { rotatingSecret } from './secret-source.ts';
import { readRotatingSecret, readSecret } from './secrets.ts';
import { type ConfigOf, readTable, readTables, readValue, type Table } from './table.ts';
import { webhookUrl } from './urls.ts';
import { address, matching, network, oneOf, wholeNumber } from './values.ts';
import { z } from 'zod';

const minSeedChars = 43;

export const logShape = {
  origin: matching(
    originPattern,
    'must name the log: visible ASCII without "+", such as "jobs.example/log"',
  ).describe("The log's name"),
  key: rotatingSecret.describe(
    'Ed25519 seed that signs heads, 32 bytes in hex or base64; `tollbook log key` makes one',
  ),
  attested_by: matching(
    verifierKeyPattern,
    'must be the public key of a verifier, as `tollbook log key` prints it',
  )
    .optional()
    .describe('Public key of a verifier: refunds of the console trust its newest attestation'),
  anchors: z.unknown(),
} as const;

export const anchorShape = {
  kind: oneOf(['folder', 's3', 'webhook', 'chain']).describe('Decides which other keys apply'),
  name: matching(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"')
    .optional()
    .describe('Name in logs, metrics and alerts; default `anchor-1` and so on'),
  every_ms: wholeNumber(10, 86_400_000)
    .optional()
    .describe('Shortest time between checkpoints; default 10,000, on a chain 3,600,000'),
  ...placeShape,
  network: network.optional().describe('Chain'),
  contract: address.optional().describe('Chain: the `CheckpointAnchor` contract'),
} as const;

const defaultEveryMs = 10_000;
const defaultChainMs = 3_600_000;

type AnchorTable = Table<typeof anchorShape>;

/** The tamper-evident log over the ledger. */
type Bounds = Constants['log'];

export interface LogConfig extends Omit<ConfigOf<typeof logShape>, 'anchors' | 'attestedBy'>, Bounds {
  /** The Ed25519 seeds in hex. Both sign, so that those who know one of the keys can verify. */
  readonly seeds: RotatingSecret;
  readonly anchors: readonly AnchorConfig[];
  readonly attestedBy: NoteVerifier | undefined;
}

/** Where checkpoints are copied to, at most once in `everyMs`; names are unique. */
export type AnchorConfig = { readonly name: string; readonly everyMs: number } & (
  | { readonly kind: 'folder'; readonly folder: string }
  | { readonly kind: 'webhook'; readonly url: string; readonly secret?: string }
  | Bucket
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
  folder: { needs: ['location'], takes: [] },
  webhook: { needs: ['location'], takes: ['secret'] },
  s3: { needs: ['location', 'secret'], takes: ['region'] },
  chain: { needs: ['network', 'contract', 'secret'], takes: [] },
} as const satisfies Record<
  string,
  { needs: readonly (keyof typeof anchorShape)[]; takes: readonly (keyof typeof anchorShape)[] }
>;

/** Reads `[log]`, its key and its anchors; undefined if the table is missing, or after a report. */
export async function readLog(raw: unknown, reading: Reading): Promise<LogConfig | undefined> {
  if (raw === undefined) return undefined;
  const table = readTable(logShape, raw, ['log'], reading.report);
  const missing = 'is missing: say where it is; `tollbook log key` makes one';
  const texts = await readRotatingSecret(table, 'key', { minChars: minSeedChars, missing }, reading);
  const seeds = readSeeds(texts, table.at, reading);
  const anchors = await readAnchors(table.values.anchors, reading);
  const attestedBy = readVerifierKey(table, reading);
  return table.whole && seeds && { ...reading.constants.log, ...table.whole, seeds, anchors, attestedBy };
}

function readVerifierKey(
  { values, at }: Table<typeof logShape>,
  { report }: Reading,
): NoteVerifier | undefined {
  if (values.attestedBy === undefined) return undefined;
  try {
    return parseVerifierKey(values.attestedBy);
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    report.mistake([...at, 'attested_by'], error.message);
    return undefined;
  }
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
  const { location } = values;
  if (location === undefined || values.kind === undefined) return undefined;
  const at = [...table.at, 'location'];
  const bucket = values.kind === 's3' ? readBucket(location, at, reading.report) : undefined;
  const url = values.kind === 'webhook' ? readValue(webhookUrl, location, at, reading.report) : undefined;
  if (!whole) return undefined;
  const common = { name, everyMs: whole.everyMs ?? defaultEveryMs };
  const { kind, region } = whole;
  if (kind === 'folder') return { ...common, kind, folder: besideConfig(reading.file, location) };
  if (kind === 'webhook' && url)
    return { ...common, kind, url: url.value, ...(signing !== undefined && { secret: signing }) };
  if (kind !== 's3' || !bucket || signing === undefined) return undefined;
  const key = readBucketKey(signing, [...table.at, 'secret'], reading);
  return key && { ...common, kind, ...bucket, region, ...key };
}

/** Each checkpoint on a chain costs a transaction. */
async function readChainAnchor(
  table: AnchorTable,
  name: string,
  reading: Reading,
): Promise<AnchorConfig | undefined> {
  const privateKey = await readPrivateKey(table, 'secret', undefined, reading);
  const rpcUrl = rpcUrlOf(table.values.network, [...table.at, 'network'], reading);
  const { network: chain, contract, everyMs = defaultChainMs } = table.whole ?? {};
  const chainId = chain && chainIdOf(chain);
  if (!chain || !chainId || rpcUrl === undefined || !contract || !privateKey) return undefined;
  return { name, everyMs, kind: 'chain', network: chain, chainId, rpcUrl, contract, privateKey };
}

function checkKeys({ at, values, names }: AnchorTable, { report }: Reading): void {
  if (values.kind === undefined) return;
  const { needs, takes } = keysOf[values.kind];
  for (const key of needs)
    if (!names(key)) report.mistake([...at, key], `is missing: ${values.kind} needs it`);
  const known = new Set<string>(['kind', 'name', 'every_ms', ...needs, ...takes]);
  for (const key of Object.keys(anchorShape) as (keyof typeof anchorShape)[])
    if (names(key) && !known.has(key))
      report.mistake([...at, key], `would be ignored: ${values.kind} does not have this key`);
}

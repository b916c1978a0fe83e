import { z } from 'zod';
import { type Discovery, discoveryOf, plainDiscovery } from '../domain/payments/discovery.ts';
import { authModes, invocationModes, jobKey } from '../domain/payments/job.ts';
import { type JsonSchema, readJsonSchema } from './json-schema.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import { type ConfigOf, readTables, type Table } from './table.ts';
import { rpcUrl } from './urls.ts';
import {
  address,
  flag,
  jobIndex,
  mediaType,
  network,
  oneLine,
  oneOf,
  serviceId,
  wholeNumber,
} from './values.ts';

const policyShape = {
  service_id: serviceId,
  job_index: jobIndex,
  invocation_mode: oneOf(invocationModes),
  /** What the job is called, and what it does, where clients look for jobs. */
  name: oneLine(64).optional(),
  description: oneLine(500).optional(),
  auth_mode: oneOf(authModes).optional(),
  net_rpc_url: rpcUrl.optional(),
  net_contract: address.optional(),
  /** The chain that has the contract: the RPC must serve it. */
  net_network: network.optional(),
  content_type: mediaType.optional(),
  input_schema_file: z.string().min(1).optional(),
  /** Of the runner's results. It describes them to clients; no result is checked. */
  output_schema_file: z.string().min(1).optional(),
  /** Whether facilitators may list the job; by default as the key of this name at the top level says. */
  discoverable: flag.optional(),
  /** The job is not sold while its runners have taken no waiting call for so long; 0: it always is. */
  max_runner_silence_secs: wholeNumber(0, 86_400).default(0),
} as const;

const restrictedKeys = ['auth_mode', 'net_rpc_url', 'net_contract'] as const;

/** Every 402 of the job carries its entry, and every payment repeats it. One so long has room in an offer of one token. */
const maxEntryChars = 2_000;

type PolicyTable = Table<typeof policyShape>;

/** Who may call a job. A `restricted_paid` policy always has the three restricted keys, `public_paid` none. */
export interface JobPolicy extends ConfigOf<typeof policyShape> {
  /** What a request must be to be accepted; anything where left out. */
  readonly input: JobInput | undefined;
  /** How it is listed; undefined where it is not. */
  readonly discovery: Discovery | undefined;
}

/** Checked before payment: no client pays for a request that the runner must reject. */
export interface JobInput {
  /** A media type without parameters, lower case. */
  readonly contentType: string;
  /** JSON Schema, draft 2020-12; known to compile. */
  readonly schema?: JsonSchema;
}

/**
 * Reads `[[job_policies]]` in the order of the file. Returns the whole ones; the rest is reported.
 * @param isDiscoverable for jobs whose policy does not say it
 */
export async function readPolicies(
  raw: unknown,
  isDiscoverable: boolean,
  reading: Reading,
): Promise<JobPolicy[]> {
  const { report } = reading;
  const tables = readTables(policyShape, raw, ['job_policies'], report);
  for (const table of tables) checkRestrictedKeys(table, report);
  checkDuplicates(tables, report);
  const policies: JobPolicy[] = [];
  for (const { at, whole } of tables) {
    if (whole === undefined) continue;
    const input = await readInput(whole, at, reading);
    const outputSchema = await readOutput(whole, at, reading);
    const discovery =
      (whole.discoverable ?? isDiscoverable) ? describe({ input, outputSchema }, at, report) : undefined;
    policies.push({ ...whole, input, discovery });
  }
  return policies;
}

/** What a job accepts. A schema without a content type means JSON. */
async function readInput(
  { contentType, inputSchemaFile: file }: NonNullable<PolicyTable['whole']>,
  at: Path,
  reading: Reading,
): Promise<JobInput | undefined> {
  if (file === undefined) return contentType === undefined ? undefined : { contentType };
  const schema = await readJsonSchema(file, [...at, 'input_schema_file'], reading);
  return schema && { contentType: contentType ?? 'application/json', schema };
}

async function readOutput(
  { outputSchemaFile: file }: NonNullable<PolicyTable['whole']>,
  at: Path,
  reading: Reading,
): Promise<JsonSchema | undefined> {
  return file === undefined ? undefined : readJsonSchema(file, [...at, 'output_schema_file'], reading);
}

/** A job whose schemas cannot be listed is listed without them. */
function describe(
  { input, outputSchema }: { input: JobInput | undefined; outputSchema: JsonSchema | undefined },
  at: Path,
  report: Report,
): Discovery {
  const contentType = input?.contentType;
  const entry = discoveryOf({ contentType, inputSchema: input?.schema, outputSchema });
  if (entry && JSON.stringify(entry.extension).length <= maxEntryChars) return entry;
  const why = entry
    ? `are left out of discovery: its entry would have more than ${maxEntryChars} characters`
    : 'are left out of discovery: they have an $id inside, or need an `examples` with a valid value';
  report.warning(at, `the schemas of this job ${why}`);
  return plainDiscovery(contentType);
}

function checkRestrictedKeys(table: PolicyTable, report: Report): void {
  const mode = table.values.invocationMode;
  const named = [...restrictedKeys, 'net_network' as const].filter((key) => table.names(key));
  if (mode === 'public_paid') {
    for (const key of named)
      report.mistake([...table.at, key], 'would be ignored: anyone may call a public_paid job');
    return;
  }
  if (mode === undefined || (mode === 'disabled' && named.length === 0)) return;
  const reason =
    mode === 'disabled' ? `${named.join(' and ')} cannot stand without it` : 'restricted_paid needs it';
  for (const key of restrictedKeys) {
    if (!table.names(key)) report.mistake([...table.at, key], `is missing: ${reason}`);
  }
}

function checkDuplicates(tables: readonly PolicyTable[], report: Report): void {
  const seen = new Map<string, number>();
  for (const [position, { at, values }] of tables.entries()) {
    const { serviceId: service, jobIndex: index } = values;
    if (service === undefined || index === undefined) continue;
    const key = jobKey({ serviceId: service, jobIndex: index });
    const earlier = seen.get(key);
    if (earlier === undefined) seen.set(key, position);
    else report.mistake(at, `repeats job ${key} of job_policies[${earlier}]`);
  }
}

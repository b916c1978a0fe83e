import { z } from 'zod';
import { authModes, invocationModes, jobKey } from '../domain/payments/job.ts';
import { type JsonSchema, readInputSchema } from './input-schema.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import { type ConfigOf, readTables, type Table } from './table.ts';
import { rpcUrl } from './urls.ts';
import { address, jobIndex, mediaType, network, oneLine, oneOf, serviceId, wholeNumber } from './values.ts';

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
  /** The job is not sold while its runners have taken no waiting call for so long; 0: it always is. */
  max_runner_silence_secs: wholeNumber(0, 86_400).default(0),
} as const;

const restrictedKeys = ['auth_mode', 'net_rpc_url', 'net_contract'] as const;

type PolicyTable = Table<typeof policyShape>;

/** Who may call a job. A `restricted_paid` policy always has the three restricted keys, `public_paid` none. */
export interface JobPolicy extends ConfigOf<typeof policyShape> {
  /** What a request must be to be accepted; anything where left out. */
  readonly input: JobInput | undefined;
}

/** Checked before payment: no client pays for a request that the runner must reject. */
export interface JobInput {
  /** A media type without parameters, lower case. */
  readonly contentType: string;
  /** JSON Schema, draft 2020-12; known to compile. */
  readonly schema?: JsonSchema;
}

/** Reads `[[job_policies]]` in the order of the file. Returns the whole ones; the rest is reported. */
export async function readPolicies(raw: unknown, reading: Reading): Promise<JobPolicy[]> {
  const { report } = reading;
  const tables = readTables(policyShape, raw, ['job_policies'], report);
  for (const table of tables) checkRestrictedKeys(table, report);
  checkDuplicates(tables, report);
  const policies: JobPolicy[] = [];
  for (const { at, whole } of tables) {
    if (whole !== undefined) policies.push({ ...whole, input: await readInput(whole, at, reading) });
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
  const schema = await readInputSchema(file, [...at, 'input_schema_file'], reading);
  return schema && { contentType: contentType ?? 'application/json', schema };
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

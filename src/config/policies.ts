import { z } from 'zod';
import { authModes, invocationModes, jobKey } from '../domain/payments/job.ts';
import type { JobPolicy } from './config.ts';
import { readInputSchema } from './input-schema.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import { readTables, type Table } from './table.ts';
import { rpcUrl } from './urls.ts';
import { address, jobIndex, mediaType, oneOf, serviceId } from './values.ts';

const policyShape = {
  service_id: serviceId,
  job_index: jobIndex,
  invocation_mode: oneOf(invocationModes),
  auth_mode: oneOf(authModes).optional(),
  net_rpc_url: rpcUrl.optional(),
  net_contract: address.optional(),
  content_type: mediaType.optional(),
  input_schema_file: z.string().min(1).optional(),
} as const;

const restrictedKeys = ['auth_mode', 'net_rpc_url', 'net_contract'] as const;

type PolicyTable = Table<typeof policyShape>;

/** Reads `[[job_policies]]` in the order of the file. Returns the whole ones; the rest is reported. */
export async function readPolicies(raw: unknown, reading: Reading): Promise<JobPolicy[]> {
  const { report } = reading;
  const tables = readTables(policyShape, raw, ['job_policies'], report);
  for (const table of tables) checkRestrictedKeys(table, report);
  checkDuplicates(tables, report);
  const policies: JobPolicy[] = [];
  for (const { at, whole } of tables) {
    if (whole !== undefined) policies.push({ ...toPolicy(whole), ...(await readInput(whole, at, reading)) });
  }
  return policies;
}

/** What a job takes: with a schema it is JSON, whatever else is left out. */
async function readInput(
  { content_type: contentType, input_schema_file: file }: NonNullable<PolicyTable['whole']>,
  at: Path,
  reading: Reading,
): Promise<Pick<JobPolicy, 'input'>> {
  if (file === undefined) return contentType === undefined ? {} : { input: { contentType } };
  const schema = await readInputSchema(file, [...at, 'input_schema_file'], reading);
  return schema ? { input: { contentType: contentType ?? 'application/json', schema } } : {};
}

function checkRestrictedKeys(table: PolicyTable, report: Report): void {
  const mode = table.values.invocation_mode;
  const named = restrictedKeys.filter((key) => table.names(key));
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
  for (const [index, { at, values }] of tables.entries()) {
    if (values.service_id === undefined || values.job_index === undefined) continue;
    const key = jobKey({ serviceId: values.service_id, jobIndex: values.job_index });
    const earlier = seen.get(key);
    if (earlier === undefined) seen.set(key, index);
    else report.mistake(at, `repeats job ${key} of job_policies[${earlier}]`);
  }
}

function toPolicy(whole: NonNullable<PolicyTable['whole']>): JobPolicy {
  return {
    serviceId: whole.service_id,
    jobIndex: whole.job_index,
    invocationMode: whole.invocation_mode,
    ...(whole.auth_mode && { authMode: whole.auth_mode }),
    ...(whole.net_rpc_url && { netRpcUrl: whole.net_rpc_url }),
    ...(whole.net_contract && { netContract: whole.net_contract }),
  };
}

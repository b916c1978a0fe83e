import { z } from 'zod';
import { type DeclaredJob, type Discovery, discoveryOf, plainDiscovery } from '../values/discovery.ts';
import { authModes, invocationModes, jobKey, serviceIdTypes } from '../values/job.ts';
import type { Path, Report } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { policyOfRoute, type RoutesConfig } from './routes.ts';
import { type ConfigOf, readTables, type Table, isTable } from './table.ts';
import { rpcUrl } from './urls.ts';
import {
  address,
  flag,
  jobIndex,
  matching,
  mediaType,
  network,
  oneLine,
  oneOf,
  serviceId,
  wholeNumber,
} from './values.ts';
import { compileSchema } from '../values/job-input.ts';
import { besideConfig, reasonOf } from './files.ts';

export const policyShape = {
  service_id: serviceId.describe('Its service'),
  job_index: jobIndex.describe('Its index in the service'),
  invocation_mode: oneOf(invocationModes).describe('Who may call the job'),
  name: oneLine(64).optional().describe('Name for discovery'),
  description: oneLine(500).optional().describe('Description for discovery'),
  auth_mode: oneOf(authModes).optional().describe('Restricted: who is the caller'),
  net_rpc_url: rpcUrl.optional().describe('Restricted: RPC of the permission contract'),
  net_contract: address.optional().describe('Restricted: contract with `isPermittedCaller`'),
  net_network: network.optional().describe('Restricted: chain that `net_rpc_url` must serve'),
  net_service_id_type: oneOf(serviceIdTypes)
    .default('uint64')
    .describe('Restricted: type of the service id in `isPermittedCaller`'),
  content_type: mediaType.optional().describe('Media type that requests must have, checked before payment'),
  input_schema_file: z
    .string()
    .min(1)
    .optional()
    .describe('JSON Schema (draft 2020-12) of requests, checked before payment'),
  output_schema_file: z
    .string()
    .min(1)
    .optional()
    .describe('JSON Schema of results, for clients; results are not checked'),
  discoverable: flag.default(true).describe('Facilitators may list the job'),
  max_runner_silence_secs: wholeNumber(0, 86_400)
    .default(0)
    .describe(
      'Not sold (503 `runner_unavailable`) while calls wait and no runner has taken one for this long; 0: always sold',
    ),
  priority: wholeNumber(-100, 100).default(0).describe('The highest of the service is delivered first'),
  max_concurrent: wholeNumber(1, 10_000)
    .optional()
    .describe('Most calls of the job that runners have simultaneously, over all processes'),
  order_by: matching(
    /^(?:caller|job|header:[A-Za-z0-9][A-Za-z0-9-]{0,63})$/,
    'must be "caller", "job" or "header:NAME"',
  )
    .optional()
    .describe('Calls with one value are delivered in order'),
  max_per_key: wholeNumber(1, 1_000)
    .default(1)
    .describe('Most calls of one value in delivery; 1: strict order'),
  skip_after_failures: z
    .union([wholeNumber(1, 1_000), z.literal('never')], 'must be a whole number from 1 to 1000, or "never"')
    .optional()
    .meta({ type: '1 to 1,000, or "never"' })
    .describe(
      'After this many failures of a call the others of its value continue; default: once it is a dead letter; `"never"`: once an operator requeues or discards it',
    ),
  max_attempts: wholeNumber(1, 1_000)
    .optional()
    .describe('After this many failures a call is a dead letter; default: 60'),
  discard_after_secs: wholeNumber(0, 31_536_000)
    .optional()
    .describe('When a dead letter is discarded; default: never'),
} as const;

const orderKeys = ['max_per_key', 'skip_after_failures'] as const;

const restrictedKeys = ['auth_mode', 'net_rpc_url', 'net_contract'] as const;

/** Every 402 of the job carries its entry, and every payment repeats it. One this long has room in an offer of one token. */
const maxEntryChars = 2_000;

type PolicyTable = Table<typeof policyShape>;

/** Who may call a job. A `restricted_paid` policy always has the three restricted keys, `public_paid` none. */
export interface JobPolicy extends ConfigOf<typeof policyShape> {
  /** What a request must be to be accepted; anything where left out. */
  readonly input: JobInput | undefined;
  /** What its results are like, as far as the operator says. */
  readonly output: JsonSchema | undefined;
  /** How it is listed; undefined if it is not. */
  readonly discovery: Discovery | undefined;
}

/** Checked before payment: no client pays for a request that the runner must reject. */
export interface JobInput {
  /** A media type without parameters, lower case. */
  readonly contentType: string;
  /** JSON Schema, draft 2020-12; known to compile. */
  readonly schema?: JsonSchema;
}

/** Reads `[[job_policies]]` in the order of the file. Returns the whole ones; the rest is reported. */
export async function readPolicies(
  raw: unknown,
  reading: Reading,
  routes: RoutesConfig | undefined,
): Promise<JobPolicy[]> {
  const { report } = reading;
  const written = readTables(policyShape, raw, ['job_policies'], report);
  const tables = [...written, ...policiesOfRoutes(routes, written, report)];
  for (const table of tables) {
    checkRestrictedKeys(table, report);
    checkOrder(table, report);
  }
  checkDuplicates(tables, report);
  const policies: JobPolicy[] = [];
  for (const { at, whole } of tables) {
    if (whole === undefined) continue;
    const input = await readInput(whole, at, reading);
    const output = await readOutput(whole, at, reading);
    const route = routes?.all.get(jobKey(whole));
    const declared = {
      contentType: input?.contentType,
      inputSchema: input?.schema,
      outputSchema: output,
      route: route && { method: route.methods[0] ?? 'GET', path: route.path },
    };
    const discovery = whole.discoverable ? describe(declared, at, report) : undefined;
    policies.push({ ...whole, input, output, discovery });
  }
  return policies;
}

/** Of the routes that have none in the file. */
function policiesOfRoutes(
  routes: RoutesConfig | undefined,
  written: readonly PolicyTable[],
  report: Report,
): PolicyTable[] {
  const known = new Set(
    written.flatMap(({ values: { serviceId: service, jobIndex: index } }) =>
      service === undefined || index === undefined ? [] : jobKey({ serviceId: service, jobIndex: index }),
    ),
  );
  const bare = [...(routes?.all.values() ?? [])].filter((route) => !known.has(jobKey(route)));
  return readTables(policyShape, bare.map(policyOfRoute), ['routes'], report);
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
function describe(declared: DeclaredJob, at: Path, report: Report): Discovery {
  const entry = discoveryOf(declared);
  if (entry && JSON.stringify(entry.extension).length <= maxEntryChars) return entry;
  const why = entry
    ? `are left out of discovery: its entry would have more than ${maxEntryChars} characters`
    : 'are left out of discovery: they have an $id inside, or need an `examples` with a valid value';
  report.warning(at, `the schemas of this job ${why}`);
  return plainDiscovery(declared.contentType, declared.route);
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

function checkOrder({ at, values, names }: PolicyTable, report: Report): void {
  if (!names('order_by'))
    for (const key of orderKeys.filter((name) => names(name)))
      report.mistake([...at, key], 'would be ignored: order_by is missing');
  if (values.orderBy === 'caller' && values.invocationMode === 'public_paid')
    report.mistake([...at, 'order_by'], 'a public_paid job has no callers: use "job" or "header:NAME"');
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

type JsonSchema = Readonly<Record<string, unknown>>;

/** Reads a JSON Schema and compiles it once, so that a mistake in it is reported before the gateway starts. */
async function readJsonSchema(
  path: string,
  at: Path,
  { file: configFile, readFile, report }: Reading,
): Promise<JsonSchema | undefined> {
  const file = besideConfig(configFile, path);
  try {
    const schema: unknown = JSON.parse(await readFile(file));
    if (!isTable(schema)) throw new TypeError('it is not a JSON object');
    compileSchema(schema);
    return schema;
  } catch (error) {
    const reason = error instanceof Error && !('code' in error) ? error.message : reasonOf(error);
    report.mistake(at, `${file} is not a usable JSON Schema (draft 2020-12): ${reason}`);
    return undefined;
  }
}

import { z } from 'zod';
import type { RunnerConfig } from './config.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import { readSecret } from './secrets.ts';
import { readTables, type Table } from './table.ts';
import { isPlainOverNetwork, pushUrl } from './urls.ts';
import { filePath, oneOf, plainName, serviceId, variableName } from './values.ts';

const minTokenChars = 16;

const runnerShape = {
  name: plainName.optional(),
  services: z
    .array(serviceId, 'must be an array of service ids')
    .min(1, 'must name at least one service')
    .refine((ids) => new Set(ids).size === ids.length, 'names a service twice'),
  mode: oneOf(['push', 'lease']),
  url: pushUrl.optional(),
  token_env: variableName.optional(),
  token_file: filePath.optional(),
} as const;

type RunnerTable = Table<typeof runnerShape>;

/** Reads `[[runners]]` and their tokens. Returns the whole ones; what is wrong with the others is reported. */
export async function readRunners(raw: unknown, reading: Reading): Promise<RunnerConfig[]> {
  const tables = readTables(runnerShape, raw, ['runners'], reading.report);
  const runners: RunnerConfig[] = [];
  const names = new Map<string, number>();
  for (const [index, table] of tables.entries()) {
    checkUrl(table, reading.report);
    const name = table.values.name ?? `runner-${index + 1}`;
    const earlier = names.get(name);
    if (earlier === undefined) names.set(name, index);
    else reading.report.mistake([...table.at, 'name'], `"${name}" is the name of runners[${earlier}] too`);
    const token = await readToken(table, reading);
    if (table.whole !== undefined && token !== undefined) runners.push(toRunner(table.whole, name, token));
  }
  checkTokens(runners, reading.report);
  return runners;
}

/** The lease API knows a runner by its token alone. */
function checkTokens(runners: readonly RunnerConfig[], report: Report): void {
  const owners = new Map<string, string>();
  for (const { name, mode, token } of runners) {
    if (mode !== 'lease') continue;
    const owner = owners.get(token);
    if (owner === undefined) owners.set(token, name);
    else
      report.mistake(
        ['runners'],
        `${owner} and ${name} lease with the same token, so nothing tells them apart`,
      );
  }
}

function checkUrl({ at, values, names }: RunnerTable, report: Report): void {
  if (values.mode === 'push' && !names('url')) report.mistake([...at, 'url'], 'is missing: push needs it');
  if (values.mode === 'lease' && names('url')) {
    report.mistake([...at, 'url'], 'would be ignored: a lease runner asks for its calls');
  }
  if (values.url !== undefined && isPlainOverNetwork(values.url)) {
    report.warning([...at, 'url'], 'is plain http: calls and the bearer token cross the network unencrypted');
  }
}

async function readToken({ at, values, names }: RunnerTable, reading: Reading): Promise<string | undefined> {
  if (!names('token_env') && !names('token_file')) {
    reading.report.mistake([...at, 'token_env'], 'is missing: name it, or token_file');
  }
  return readSecret(
    {
      at,
      envKey: 'token_env',
      envName: values.token_env,
      fileKey: 'token_file',
      filePath: values.token_file,
      minChars: minTokenChars,
    },
    reading,
  );
}

function toRunner(whole: NonNullable<RunnerTable['whole']>, name: string, token: string): RunnerConfig {
  const { services, mode, url } = whole;
  return { name, services, mode, ...(url !== undefined && { url }), token };
}

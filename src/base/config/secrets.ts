import { createHash } from 'node:crypto';
import type { z } from 'zod';
import type { RotatingSecret } from '../values/rotating-secret.ts';
import { readEnvironmentSecret } from './environment-secret.ts';
import { besideConfig, reasonOf } from './files.ts';
import { formatPath, type Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { camelCase, reloadable, type Shape, type Table } from './table.ts';
import { filePath, variableName } from './values.ts';

type SecretKeys<N extends string> = Readonly<
  Record<`${N}_env` | `${N}_file`, z.ZodOptional<typeof variableName>>
>;

/** The names of a shape's secrets. */
export type SecretName<S extends Shape> = {
  [K in keyof S & string]: K extends `${infer N}_env` ? N : never;
}[keyof S & string];

/** Of a secret that the operator makes up: 128 bits in hexadecimal, the least dense of the usual alphabets. A peer's own may be shorter. */
export const ownSecretChars = 32;

interface SecretRules {
  readonly minChars: number;
  /** The message where neither key is named; without it the secret is optional. */
  readonly missing?: string;
}

/** The two keys that say where a secret is: `NAME_env`, an environment variable (or its `…_FILE`), or `NAME_file`, a file. */
export function secretKeys<const N extends string>(name: N): SecretKeys<N> {
  const keys = { [`${name}_env`]: variableName.optional(), [`${name}_file`]: filePath.optional() };
  // computed keys lose their literal types
  return keys as SecretKeys<N>;
}

/** The keys of a secret that can be replaced: its own, and those of the second one, `second_NAME_…`. A reload reads them again. */
export function rotatingKeys<const N extends string>(name: N): SecretKeys<N> & SecretKeys<`second_${N}`> {
  const keys = Object.entries<z.ZodType>({ ...secretKeys(name), ...secretKeys(`second_${name}`) });
  const marked = keys.map(([key, schema]) => [key, reloadable(schema)]);
  // computed keys lose their literal types
  return Object.fromEntries(marked) as SecretKeys<N> & SecretKeys<`second_${N}`>;
}

/** Reads a secret and the second one beside it. Undefined when none is named, or after a report. */
export async function readRotatingSecret<S extends Shape>(
  table: Table<S>,
  name: SecretName<S>,
  rules: SecretRules,
  reading: Reading,
): Promise<RotatingSecret | undefined> {
  // a shape that has a rotating secret has the names of both
  const secondName = `second_${name}` as SecretName<S>;
  const inUse = await readSecret(table, name, rules, reading);
  const second = await readSecret(table, secondName, { minChars: rules.minChars }, reading);
  const keys = [`${secondName}_env`, `${secondName}_file`];
  const named = keys.find((key) => table.names(key));
  if (named === undefined) return inUse === undefined ? undefined : [inUse];
  const at = [...table.at, named];
  if (!table.names(`${name}_env`) && !table.names(`${name}_file`))
    reading.report.mistake(at, `would be ignored: there is no ${name}_env or ${name}_file`);
  if (inUse === undefined || second === undefined) return undefined;
  if (second === inUse) reading.report.mistake(at, `names the same secret as ${name}: nothing would change`);
  return [inUse, second];
}

/**
 * Reads a secret from the environment or a file, without the line's end.
 * Undefined when neither is named, or after a report; no message ever contains the secret.
 */
export async function readSecret<S extends Shape>(
  { at, values, names }: Table<S>,
  name: SecretName<S>,
  { minChars, missing }: SecretRules,
  reading: Reading,
): Promise<string | undefined> {
  const env = `${name}_env`;
  const file = `${name}_file`;
  const variable: unknown = Reflect.get(values, camelCase(env));
  const path: unknown = Reflect.get(values, camelCase(file));
  if (typeof variable === 'string' && typeof path === 'string') {
    reading.report.mistake([...at, file], `cannot stand beside ${env}: name one of them`);
    return undefined;
  }
  if (reading.skippedSecrets && (typeof variable === 'string' || typeof path === 'string'))
    return skip([...at, typeof variable === 'string' ? env : file], reading.skippedSecrets);
  if (typeof variable === 'string') return readVariable(variable, [...at, env], minChars, reading);
  if (typeof path === 'string') return readSecretFile(path, [...at, file], minChars, reading);
  if (missing !== undefined && !names(env) && !names(file)) reading.report.mistake([...at, env], missing);
  return undefined;
}

/** A value of a secret's form, different for each variable, that is in use nowhere. */
function skip(at: Path, skipped: Path[]): string {
  skipped.push(at);
  return createHash('sha256').update(formatPath(at)).digest('hex');
}

async function readVariable(
  name: string,
  at: Path,
  minChars: number,
  reading: Reading,
): Promise<string | undefined> {
  const secret = await readEnvironmentSecret(name, reading.env, reading.readFile);
  const value = secret.kind === 'found' ? secret.value.trim() : '';
  if (secret.kind === 'found' && value !== '') return checked(value, secret.source, at, minChars, reading);
  reading.report.mistake(
    at,
    secret.kind === 'wrong'
      ? `${secret.variable} ${secret.message}`
      : `the environment variable ${name} is not set`,
  );
  return undefined;
}

async function readSecretFile(
  path: string,
  at: Path,
  minChars: number,
  reading: Reading,
): Promise<string | undefined> {
  const file = besideConfig(reading.file, path);
  try {
    return checked((await reading.readFile(file)).trim(), file, at, minChars, reading);
  } catch (error) {
    reading.report.mistake(at, `${file} cannot be read: ${reasonOf(error)}`);
    return undefined;
  }
}

/** Secrets are sent as bearer tokens, so they must fit into a header. */
function checked(
  secret: string,
  source: string,
  at: Path,
  minChars: number,
  reading: Reading,
): string | undefined {
  let wrong: string | undefined;
  if (secret === '') wrong = 'is empty';
  else if (secret.length < minChars) wrong = `must have at least ${minChars} characters`;
  else if (!/^[\x21-\x7e]+$/.test(secret)) wrong = 'must have only visible ASCII characters, no blanks';
  if (wrong === undefined) return secret;
  reading.report.mistake(at, `${source} ${wrong}`);
  return undefined;
}

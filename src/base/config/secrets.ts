import { createHash } from 'node:crypto';
import type { z } from 'zod';
import type { RotatingSecret } from '../values/rotating-secret.ts';
import { readEnvironmentSecret } from './environment-secret.ts';
import { besideConfig, reasonOf } from './files.ts';
import { formatPath, type Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import type { SecretSources } from './secret-source.ts';
import type { Shape, Table } from './table.ts';

/** The keys of a shape that say where a secret is. */
export type SecretName<S extends Shape> = {
  [K in keyof S & string]: z.output<S[K]> extends SecretSources | undefined ? K : never;
}[keyof S & string];

/** Of a secret that the operator makes up: 128 bits in hexadecimal, the least dense of the usual alphabets. A peer's own may be shorter. */
export const ownSecretChars = 32;

interface SecretRules {
  readonly minChars: number;
  /** The message if the key is missing; without it the secret is optional. */
  readonly missing?: string;
}

/** Reads a secret and the second one, if the key has a list. Undefined when the key is missing, or after a report. */
export async function readRotatingSecret<S extends Shape>(
  table: Table<S>,
  name: SecretName<S>,
  rules: SecretRules,
  reading: Reading,
): Promise<RotatingSecret | undefined> {
  const secrets = await readSecrets(table, name, rules, reading);
  const [inUse, ...accepted] = secrets.filter((secret) => secret !== undefined);
  if (inUse === undefined || accepted.length < secrets.length - 1) return undefined;
  if (accepted.includes(inUse))
    reading.report.mistake([...table.at, name], 'names the same secret twice: nothing would change');
  return [inUse, ...accepted];
}

/**
 * Reads a secret from the environment or a file, without the line's end.
 * Undefined when the key is missing, or after a report; no message ever contains the secret.
 */
export async function readSecret<S extends Shape>(
  table: Table<S>,
  name: SecretName<S>,
  rules: SecretRules,
  reading: Reading,
): Promise<string | undefined> {
  const [secret] = await readSecrets(table, name, rules, reading);
  return secret;
}

/** One for each source; undefined for one that was reported. */
async function readSecrets<S extends Shape>(
  { at, secrets, names }: Table<S>,
  name: SecretName<S>,
  { minChars, missing }: SecretRules,
  reading: Reading,
): Promise<(string | undefined)[]> {
  const sources = secrets.get(name)?.list ?? [];
  if (missing !== undefined && !names(name)) reading.report.mistake([...at, name], missing);
  return Promise.all(
    sources.map(async (source, index) => {
      const path = sources.length === 1 ? [...at, name] : [...at, name, index];
      if (reading.skippedSecrets) return skip(path, reading.skippedSecrets);
      return source.from === 'env'
        ? readVariable(source.name, path, minChars, reading)
        : readSecretFile(source.name, path, minChars, reading);
    }),
  );
}

/** A value of a secret's form, different for each key, that is in use nowhere. */
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
  if (secret.kind === 'found' && secret.file !== undefined) reading.secretFiles.add(secret.file);
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
  reading.secretFiles.add(file);
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

import { besideConfig, reasonOf } from './files.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';

/** Where a secret is, and the keys that said so. */
export interface SecretPlace {
  readonly at: Path;
  readonly envKey: string;
  readonly envName: string | undefined;
  readonly fileKey: string;
  readonly filePath: string | undefined;
  readonly minChars: number;
}

/**
 * Fetches a secret from the environment or a file, without the line's end.
 * Undefined when neither is named, or after a report; no message ever holds the secret.
 */
export async function readSecret(place: SecretPlace, reading: Reading): Promise<string | undefined> {
  const { envName, filePath } = place;
  if (envName !== undefined && filePath !== undefined) {
    reading.report.mistake(
      [...place.at, place.fileKey],
      `cannot stand beside ${place.envKey}: name one of them`,
    );
    return undefined;
  }
  if (envName !== undefined) return readVariable(envName, place, reading);
  return filePath === undefined ? undefined : readSecretFile(filePath, place, reading);
}

function readVariable(name: string, place: SecretPlace, reading: Reading): string | undefined {
  const at = [...place.at, place.envKey];
  const value = Object.hasOwn(reading.env, name) ? reading.env[name]?.trim() : undefined;
  if (value === undefined || value === '') {
    reading.report.mistake(at, `the environment variable ${name} is not set`);
    return undefined;
  }
  return checked(value, `the environment variable ${name}`, at, place.minChars, reading);
}

async function readSecretFile(
  path: string,
  place: SecretPlace,
  reading: Reading,
): Promise<string | undefined> {
  const at = [...place.at, place.fileKey];
  const file = besideConfig(reading.file, path);
  try {
    return checked((await reading.readFile(file)).trim(), file, at, place.minChars, reading);
  } catch (error) {
    reading.report.mistake(at, `${file} cannot be read: ${reasonOf(error)}`);
    return undefined;
  }
}

/** Secrets travel as bearer tokens, so they must fit into a header. */
function checked(
  secret: string,
  source: string,
  at: Path,
  minChars: number,
  reading: Reading,
): string | undefined {
  let wrong: string | undefined;
  if (secret === '') wrong = 'is empty';
  else if (secret.length < minChars) wrong = `must hold at least ${minChars} characters`;
  else if (!/^[\x21-\x7e]+$/.test(secret)) wrong = 'must hold only visible ASCII characters, no blanks';
  if (wrong === undefined) return secret;
  reading.report.mistake(at, `${source} ${wrong}`);
  return undefined;
}

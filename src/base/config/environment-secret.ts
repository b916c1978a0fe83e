import type { Environment } from './environment.ts';
import { reasonOf } from './files.ts';
import type { ReadFile } from './reading.ts';

/** What the environment has for a secret. No message ever contains the secret. */
export type EnvironmentSecret =
  | { readonly kind: 'missing' }
  | { readonly kind: 'wrong'; readonly variable: string; readonly message: string }
  | {
      readonly kind: 'found';
      readonly value: string;
      /** Its place, for messages. */
      readonly source: string;
      /** The file that it was read from, if it was. */
      readonly file?: string;
    };

/**
 * Reads a secret from the variable NAME, or from the file that NAME_FILE names, without the end of its last line: container engines
 * give secrets as files. An empty variable counts as unset.
 */
export async function readEnvironmentSecret(
  name: string,
  env: Environment,
  readFile: ReadFile,
): Promise<EnvironmentSecret> {
  const fileVariable = `${name}_FILE`;
  const value = own(env, name);
  const file = own(env, fileVariable);
  if (value !== undefined && file !== undefined)
    return {
      kind: 'wrong',
      variable: fileVariable,
      message: `is set, and so is ${name}: set one of them`,
    };
  if (value !== undefined) return { kind: 'found', value, source: `the environment variable ${name}` };
  if (file === undefined) return { kind: 'missing' };
  try {
    const text = await readFile(file);
    return { kind: 'found', value: text.replace(/\r?\n$/, ''), source: file, file };
  } catch (error) {
    return {
      kind: 'wrong',
      variable: fileVariable,
      message: `names ${file}, which cannot be read: ${reasonOf(error)}`,
    };
  }
}

/** Not what every object has, such as `constructor`. */
function own(env: Environment, name: string): string | undefined {
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  return value === '' ? undefined : value;
}

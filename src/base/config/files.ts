import { readFile, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';

/** A text file. Rejects like `node:fs` does. */
export function readText(file: string): Promise<string> {
  return readFile(file, 'utf8');
}

/** Whether every user of this machine can read a file. Rejects like `node:fs` does. */
export async function isReadableByAll(file: string): Promise<boolean> {
  const { mode } = await stat(file);
  return (mode & 0o004) !== 0;
}

/** A path named in the operator's file, which is relative to that file. */
export function besideConfig(configFile: string, path: string): string {
  return isAbsolute(path) ? path : join(dirname(configFile), path);
}

/** Why a file could not be read, without the stack of it. */
export function reasonOf(error: unknown): string {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT') return 'there is no such file';
  return typeof code === 'string' ? code : String(error);
}

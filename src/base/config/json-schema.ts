import { compileSchema } from '../values/job-input.ts';
import { besideConfig, reasonOf } from './files.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { isTable } from './table.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Reads a JSON Schema and compiles it once, so that a mistake in it is reported before the gateway starts. */
export async function readJsonSchema(
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

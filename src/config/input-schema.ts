import { compileSchema } from '../domain/payments/job-input.ts';
import type { JsonSchema } from './config.ts';
import { besideConfig, reasonOf } from './files.ts';
import type { Path } from './mistakes.ts';
import type { Reading } from './reading.ts';
import { isTable } from './table.ts';

/** Reads a job's JSON Schema and compiles it once, so that what is wrong with it is known before anything listens. */
export async function readInputSchema(
  path: string,
  at: Path,
  { file: configFile, readFile, report }: Reading,
): Promise<JsonSchema | undefined> {
  const file = besideConfig(configFile, path);
  try {
    const schema: unknown = JSON.parse(await readFile(file));
    if (!isTable(schema)) throw new TypeError('it is no JSON object');
    compileSchema(schema);
    return schema;
  } catch (error) {
    const reason = error instanceof Error && !('code' in error) ? error.message : reasonOf(error);
    report.mistake(at, `${file} is no JSON Schema (draft 2020-12) that can be used: ${reason}`);
    return undefined;
  }
}

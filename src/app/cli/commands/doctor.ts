import { processEnvironment } from '../../../base/config/environment.ts';
import { ArgumentError, readGivenFile, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { finding, say } from '../../../base/terminal/terminal.ts';
import { countOf } from '../../../base/values/count-text.ts';
import type { CheckResult } from '../../doctor/check-result.ts';
import { diagnose } from '../../doctor/doctor.ts';
import { appCommands } from '../descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(appCommands.doctor, args);
  const { config: file } = values;
  if (file === undefined) throw new ArgumentError('name the configuration: tollbook doctor --config FILE');
  await readGivenFile('config', file);
  const results = await diagnose(file, processEnvironment());
  const failed = results.filter(({ kind }) => kind === 'fail').length;
  if (values.json) say(JSON.stringify({ checks: results.map(toJson) }, undefined, 2));
  else for (const result of results) say(linesOf(result));
  if (failed === 0) return exitCodes.done;
  return finding(
    `${countOf(failed, 'check')} failed: do what the line below each says, then run \`tollbook doctor\` again`,
  );
}

function toJson({ kind, what, found, ...more }: CheckResult): object {
  return { status: kind, check: what, found, ...more };
}

/** The column at which all that follows a result's kind begins. */
const indent = 6;

function linesOf(result: CheckResult): string {
  const line = `${result.kind.padEnd(indent)}${result.what}: ${result.found}`;
  return result.kind === 'ok' ? line : `${line}\n${' '.repeat(indent)}${result.repair}`;
}

import { execFile } from 'node:child_process';
import path from 'node:path';

/** What one run of a command of `tollbook` took. */
export interface Measured {
  readonly secs: number;
  /** Of its processor time, without the database's. */
  readonly userSecs: number;
  /** Its resident memory at most. */
  readonly mebibytes: number;
  readonly out: string;
}

/** The exit code of `timeout` where the program ran that long. */
const timedOut = 124;

/**
 * Runs `tollbook` with these arguments in its own process.
 * @throws if it does not end with `code`
 */
export async function runMeasured(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Measured> {
  const measured = await runLimited(args, env, 3_600);
  if (!measured) throw new Error(`${args[0]} has not ended after an hour`);
  return measured;
}

/**
 * The same for at most `limitSecs`; undefined if it has not ended by then.
 * @throws if it ends with another code than `code`
 */
export async function runLimited(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  limitSecs: number,
  code = 0,
): Promise<Measured | undefined> {
  const program = path.join(import.meta.dirname, '../src/app/cli/tollbook.ts');
  const start = performance.now();
  const options = { env, maxBuffer: 1 << 26 };
  const { out, err } = await new Promise<{ out: string; err: string }>((resolve) =>
    execFile(
      '/usr/bin/time',
      ['-v', 'timeout', String(limitSecs), process.execPath, program, ...args],
      options,
      (_, stdout, stderr) => resolve({ out: stdout, err: stderr }),
    ),
  );
  const figure = (name: string): number => Number(new RegExp(`${name}: ([\\d.]+)`).exec(err)?.[1]);
  const ended = figure('Exit status');
  if (ended === timedOut) return undefined;
  if (ended !== code) throw new Error(`${args[0]} did not end with ${code}: ${out}${err}`);
  return {
    secs: (performance.now() - start) / 1_000,
    userSecs: figure(String.raw`User time \(seconds\)`),
    mebibytes: Math.round(figure(String.raw`Maximum resident set size \(kbytes\)`) / 1_024),
    out,
  };
}

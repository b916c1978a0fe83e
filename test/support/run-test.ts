import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { processEnvironment } from '../../src/base/config/environment.ts';

/** A test that must fail in a copy with a bug: its file, and its whole name. */
export interface GuardingTest {
  readonly file: string;
  readonly name: string;
}

/** `not_run` if no test of that name was run: its file failed to load, or its name is another. */
export type TestResult = 'passed' | 'failed' | 'not_run';

/** A file that a run reports. Its `name` begins at the root of the copy. */
export interface TestedFile {
  readonly name: string;
  /** `failed` without tests: it could not be loaded. */
  readonly status: string;
  readonly tests: readonly { readonly title: string; readonly status: string }[];
}

const report = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      assertionResults: z.array(z.object({ title: z.string(), status: z.string() })),
    }),
  ),
});

/** Runs tests of a copy of the repository, one worker at a time. Nothing is reported if the run itself failed. */
export async function runTests(root: string, args: readonly string[]): Promise<readonly TestedFile[]> {
  const reportFile = path.join(root, 'test-report.json');
  rmSync(reportFile, { force: true });
  const child = spawn(
    process.execPath,
    [
      'node_modules/vitest/vitest.mjs',
      ...args,
      // the properties' files are among the tests
      '--project=tests',
      '--project=rigs',
      '--maxWorkers=1',
      '--reporter=json',
      `--outputFile=${reportFile}`,
    ],
    { cwd: root, env: processEnvironment(), stdio: 'ignore' },
  );
  await once(child, 'exit');
  try {
    const { testResults } = report.parse(JSON.parse(readFileSync(reportFile, 'utf8')));
    return testResults.map(({ name, status, assertionResults: tests }) => ({
      name: path.relative(root, name),
      status,
      tests,
    }));
  } catch {
    return [];
  }
}

/** Runs one test of a copy of the repository. */
export async function runTest(root: string, { file, name }: GuardingTest): Promise<TestResult> {
  const files = await runTests(root, ['run', file, '-t', patternOf([name])]);
  const found = files.flatMap(({ tests }) => tests).find(({ title }) => title === name);
  return found?.status === 'passed' || found?.status === 'failed' ? found.status : 'not_run';
}

/** For `-t`: every test with one of the names. */
export function patternOf(names: readonly string[]): string {
  return names.map((name) => name.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)).join('|');
}

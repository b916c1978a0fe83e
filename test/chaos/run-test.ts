import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { processEnvironment } from '../../src/config/environment.ts';
import type { GuardingTest } from './test-plants.ts';

/** `not_run` where no test of that name was run: its file failed to load, or its name is another. */
export type TestResult = 'passed' | 'failed' | 'not_run';

const report = z.object({
  testResults: z.array(
    z.object({ assertionResults: z.array(z.object({ title: z.string(), status: z.string() })) }),
  ),
});

/** Runs one test of a copy of the repository. */
export async function runTest(root: string, { file, name }: GuardingTest): Promise<TestResult> {
  const reportFile = path.join(root, 'test-report.json');
  const pattern = name.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  const reporter = ['--reporter=json', `--outputFile=${reportFile}`];
  const child = spawn(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', file, '-t', pattern, '--maxWorkers=1', ...reporter],
    { cwd: root, env: processEnvironment(), stdio: 'ignore' },
  );
  await once(child, 'exit');
  try {
    const { testResults } = report.parse(JSON.parse(readFileSync(reportFile, 'utf8')));
    const found = testResults.flatMap((of) => of.assertionResults).find(({ title }) => title === name);
    return found?.status === 'passed' || found?.status === 'failed' ? found.status : 'not_run';
  } catch {
    return 'not_run';
  }
}

import { expect, onTestFinished, test, vi } from 'vitest';
import { root } from '../support/pages.ts';
import { commandLine, spawnProgram, tollbook } from '../support/program.ts';
import { timeLimits } from '../support/time-limits.ts';

vi.setConfig({ testTimeout: timeLimits.rigMs });

test('one command makes two whole months, closed and reviewed, from which customers get statements', async () => {
  const options = ['--months', '2', '--payments', '100', '--keep'];
  const program = spawnProgram([commandLine[0], 'test/year/main.ts', ...options], root);
  onTestFinished(async () => {
    program.kill('SIGTERM');
    await program.exited;
  });
  // two months take longer than what tests wait for elsewhere
  const made = vi.waitFor(() => expect(program.stdout()).toContain('tollbook period list'), {
    timeout: timeLimits.rigMs,
    interval: 200,
  });
  await Promise.race([made, program.exited]);
  const env = { DATABASE_URL: /DATABASE_URL='(.*)'/.exec(program.stdout())?.[1] ?? '' };
  const { stdout: periods } = await tollbook(['period', 'list'], env);
  expect(periods.match(/^2025-0[12] {2}closed by \S+ on \S+; reviewed by/gm)).toHaveLength(2);
  const month = ['--from', '2025-01', '--to', '2025-02'];
  const { stdout: rows } = await tollbook(['export', '--format', 'csv', ...month], env);
  const customer = /,delivery,.*,(0x[0-9a-f]{40}),/.exec(rows)?.[1] ?? '';
  const statement = await tollbook(['invoices', 'statement', '2025-01', '--customer', customer], env);
  expect(statement).toMatchObject({ code: 0, stdout: expect.stringContaining(`Customer ${customer}`) });
});

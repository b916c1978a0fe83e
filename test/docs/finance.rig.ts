import { globSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../src/devnet/ports.ts';
import { absence, isAbsent } from '../support/journal-tools.ts';
import { isStart, linkRepository, runSteps, type Step } from '../support/page-shell.ts';
import { readPage, root } from '../support/pages.ts';
import { endProcessesAround } from '../support/processes.ts';
import { startTollbook, temporaryFolder } from '../support/program.ts';

const tools = [
  ['hledger', /^hledger .*\n/gm],
  ['beancount', /^bean-check .*\n/gm],
] as const;

/** Without the commands of tools that are not installed, and without the output that only they print. */
function runnable(step: Step): Step {
  const absent = tools.filter(([tool, lines]) => isAbsent(tool) && step.text.search(lines) >= 0);
  const text = absent.reduce((left, [, lines]) => left.replaceAll(lines, ''), step.text);
  return { text, shown: absent.some(([tool]) => tool === 'hledger') ? undefined : step.shown };
}

const unchecked = tools.map(([tool]) => absence(tool)).join('');

/** In the order in which a reader works through them, in one shell. */
const tasks = ['README', 'refunds', 'reconcile', 'books', 'costs', 'month-end', 'accounting', 'audit'];

test(`the commands of docs/finance/ close a month and print what the pages show${unchecked}`, async () => {
  const files = globSync('docs/finance/*.md', { cwd: root }).map((file) => path.basename(file, '.md'));
  expect(files.toSorted()).toEqual(tasks.toSorted());
  const steps = tasks
    .flatMap((name) => readPage(`docs/finance/${name}.md`).blocks)
    .filter(({ language, notRun }) => language === 'sh' && notRun === undefined);
  const [start, ...rest] = steps;
  expect(start).toSatisfy(isStart);
  const folder = temporaryFolder();
  linkRepository(folder);
  const port = String(await freePort());
  const options = ['--fresh', '--dir', path.join(folder, '.tollbook'), '--port', port];
  onTestFinished(() => endProcessesAround(folder));
  await startTollbook(['start', ...options]).says(/Try next/);
  expect((await runSteps(rest.map(runnable), folder)).join('\n')).toBe('');
});

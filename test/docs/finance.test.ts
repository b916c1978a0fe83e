import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { processEnvironment } from '../../src/config/environment.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { absence, isAbsent } from '../support/journal-tools.ts';
import { endProcessesAround } from '../support/processes.ts';
import { startTollbook, temporaryFolder } from '../support/program.ts';

const root = path.resolve(import.meta.dirname, '../..');
const page = readFileSync(path.join(root, 'docs/finance.md'), 'utf8');

/** Commands of the page, and what it says that they print; undefined where it shows nothing. */
interface Step {
  readonly commands: string;
  readonly shown: string | undefined;
}

function stepsOf(markdown: string): Step[] {
  const fenced = /^```sh\n([^]*?)^```\n(?:```text\n([^]*?)^```\n)?/gm;
  return [...markdown.matchAll(fenced)].map(([, commands = '', shown]) => ({ commands, shown }));
}

/** What differs from one run to the next, on the page and in a pattern. */
const changing: readonly (readonly [RegExp, string])[] = [
  [/0x[0-9a-f]+(?:…[0-9a-f]*)?/, '0x[0-9a-f]{4,}'],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/, '\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z'],
  [/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/, '[0-9a-f-]{36}'],
  [/(?<=root )\S+=/, '\\S+='],
  [/(?<=\()\d+(?= s\))/, '\\d+'],
  [/(?<=^|first |events |blocks \d* to |block |\d to )\d+(?=,| events| to |$| {2})/, '\\d+'],
  [/(?<=events )\d+ to \d+/, '\\d+ to \\d+'],
];
const anyChanging = new RegExp(changing.map(([form]) => `(${form.source})`).join('|'), 'g');

/** A line that is only `…` stands for any number of lines. */
function patternOf(shown: string): RegExp {
  const lines = shown.split('\n').map((line) => (line === '…' ? '(?:.*\\n)*?' : `${linePattern(line)}\\n`));
  return new RegExp(`^${lines.slice(0, -1).join('')}$`);
}

function linePattern(line: string): string {
  let pattern = '';
  let end = 0;
  for (const match of line.matchAll(anyChanging)) {
    const form = match.slice(1, changing.length + 1).findIndex((group) => group !== undefined);
    pattern += RegExp.escape(line.slice(end, match.index)) + (changing[form]?.[1] ?? '');
    end = match.index + match[0].length;
  }
  return pattern + RegExp.escape(line.slice(end));
}

const tools = [
  ['hledger', /^hledger .*\n/gm],
  ['beancount', /^bean-check .*\n/gm],
] as const;

/** Without the commands of tools that are not there, and what they alone would print. */
function runnable(step: Step): Step {
  const absent = tools.filter(([tool, lines]) => isAbsent(tool) && step.commands.search(lines) >= 0);
  const commands = absent.reduce((left, [, lines]) => left.replaceAll(lines, ''), step.commands);
  return { commands, shown: absent.some(([tool]) => tool === 'hledger') ? undefined : step.shown };
}

const mark = '@@ step';

/** Runs the commands of all steps in one shell, as somebody who copies them; what each printed. */
async function runAll(steps: readonly Step[], cwd: string): Promise<string[]> {
  const script = steps.map(({ commands }) => `${commands}printf '${mark} %s\\n' $?\n`).join('');
  const env = { PATH: processEnvironment()['PATH'] ?? '', HOME: cwd, LC_ALL: 'C.UTF-8' };
  const shell = spawn('bash', ['-c', `exec 2>&1\n${script}`], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = await Promise.all([text(shell.stdout), once(shell, 'exit')]);
  const parts = said.split(new RegExp(`^${mark} (\\d+)\\n`, 'm'));
  return steps.map(({ commands }, n) => {
    expect({ commands, code: parts[2 * n + 1], said: parts[2 * n] }).toMatchObject({ code: '0' });
    return (parts[2 * n] ?? '').replaceAll(/ +$/gm, '');
  });
}

/** A folder in which the page's commands find the project, and their own `.tollbook`. */
function workingCopy(): string {
  const dir = temporaryFolder();
  for (const name of readdirSync(root))
    if (!name.startsWith('.')) symlinkSync(path.join(root, name), path.join(dir, name));
  return dir;
}

// everything of `npm start`, and some thirty commands
const timeoutMs = 180_000;
const unchecked = tools.map(([tool]) => absence(tool)).join('');

test(
  `the month of docs/finance.md is closed by its own commands, and they say what it shows${unchecked}`,
  async () => {
    const [start, ...rest] = stepsOf(page);
    expect(start).toEqual({ commands: 'npm ci && npm start -- --fresh\n', shown: undefined });
    const dir = workingCopy();
    const port = String(await freePort());
    const options = ['--fresh', '--dir', path.join(dir, '.tollbook'), '--port', port];
    onTestFinished(() => endProcessesAround(dir));
    await startTollbook(['start', ...options]).says(/Try next/);

    const steps = rest.map(runnable);
    const said = await runAll(steps, dir);
    for (const [n, { commands, shown }] of steps.entries()) {
      const pattern = patternOf(shown ?? '');
      expect({ commands, said: said[n] }).toEqual({ commands, said: expect.stringMatching(pattern) });
    }
  },
  timeoutMs,
);

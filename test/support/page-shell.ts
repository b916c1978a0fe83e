import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { childEnvironment } from './child-environment.ts';
import { type Block, root } from './pages.ts';
import { withoutProgress } from './program.ts';
import { patternOf } from './shown-output.ts';

export type Step = Pick<Block, 'text' | 'shown'>;

const mark = '@@ step';

/** Links the repository into a folder, in which the commands of pages then have a `.tollbook` of their own. */
export function linkRepository(folder: string): void {
  for (const name of readdirSync(root))
    if (!name.startsWith('.')) symlinkSync(path.join(root, name), path.join(folder, name));
}

/**
 * Runs all steps in one shell, as a reader who copies them would. Returns a text for each step that failed, or that printed
 * something else than the page shows.
 */
export async function runSteps(
  steps: readonly Step[],
  cwd: string,
  more: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const script = steps.map((step) => `${step.text}printf '\\n${mark} %s\\n' $?\n`).join('');
  const env = { ...childEnvironment(), HOME: cwd, LC_ALL: 'C.UTF-8', ...more };
  const shell = spawn('bash', ['-c', `exec 2>&1\n${script}`], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = await Promise.all([text(shell.stdout), once(shell, 'exit')]);
  const parts = output.split(new RegExp(`\\n${mark} (\\d+)\\n`));
  return steps.flatMap(({ text: commands, shown }, n) => {
    // on a slow machine long commands report their progress
    const printed = linesOf(withoutProgress(parts[2 * n] ?? ''));
    const code = parts[2 * n + 1] ?? 'none: the shell ended';
    const isAsShown = shown === undefined || patternOf(shown).test(printed);
    if (code === '0' && isAsShown) return [];
    return [
      `${commands}--- exit code ${code}, printed:\n${printed}--- the page shows:\n${shown ?? 'nothing\n'}`,
    ];
  });
}

/** Without blanks at the ends of lines; the last line ends as every other. */
function linesOf(printed: string): string {
  const lines = printed.replaceAll(/[ \r]+$/gm, '').replace(/\n+$/, '');
  return lines === '' ? '' : `${lines}\n`;
}

const start = /^npm ci && npm start(?: -- --fresh)?(?: +#.*)?\n$/;

/** Whether a block starts the gateway beside which the other commands of its page run: a test starts that itself. */
export function isStart({ text: commands }: Step): boolean {
  return start.test(commands);
}

import { execFile, execFileSync } from 'node:child_process';
import { test } from 'vitest';
import { processEnvironment } from '../../src/config/environment.ts';

/** How each tool is asked whether a journal is right, its assertions among it. */
const checks = {
  beancount: (file: string) => ['bean-check', file],
  hledger: (file: string) => ['hledger', '-f', file, 'check', '--strict'],
} as const;

export type JournalTool = keyof typeof checks;

/** What the tool says against a journal; empty where it accepts it. */
export async function complaintsOf(tool: JournalTool, file: string): Promise<string> {
  const [command = '', ...args] = checks[tool](file);
  return new Promise((resolve) => {
    execFile(command, args, { env: environment() }, (error, stdout, stderr) =>
      resolve(error ? `${error.message}\n${stdout}${stderr}` : ''),
    );
  });
}

/** What hledger has on every account at the end, as CSV. */
export function hledgerBalances(file: string): string {
  const args = ['-f', file, 'balance', '--flat', '--no-total', '--layout=bare', '-O', 'csv'];
  return execFileSync('hledger', args, { encoding: 'utf8', env: environment() });
}

/** Runs where the tool is installed; where not it says so, on the console and in the name of the skipped test. */
export function testWith(tool: JournalTool, name: string, run: () => Promise<void>): void {
  if (isInstalled(tool)) return test(name, run);
  const words = `NOT CHECKED, ${tool} IS NOT INSTALLED (apt-get install ${tool}): ${name}`;
  process.stderr.write(`\n*** ${words}\n\n`);
  test.skip(words, run);
}

function isInstalled(tool: JournalTool): boolean {
  try {
    const [command = ''] = checks[tool]('');
    execFileSync(command, ['--version'], { stdio: 'ignore', env: environment() });
    return true;
  } catch {
    return false;
  }
}

function environment() {
  return { PATH: processEnvironment()['PATH'] ?? '', LC_ALL: 'C.UTF-8' };
}

import { execFile, execFileSync } from 'node:child_process';
import { isInstalled, packageEnvironment } from './installed.ts';

/** The command by which each tool checks a journal, including its balance assertions. */
const checks = {
  beancount: (file: string) => ['bean-check', file],
  hledger: (file: string) => ['hledger', '-f', file, 'check', '--strict'],
} as const;

export type JournalTool = keyof typeof checks;

/** The tool's objections to a journal; empty when it accepts it. */
export async function complaintsOf(tool: JournalTool, file: string): Promise<string> {
  const [command = '', ...args] = checks[tool](file);
  return new Promise((resolve) => {
    execFile(command, args, { env: packageEnvironment() }, (error, stdout, stderr) =>
      resolve(error ? `${error.message}\n${stdout}${stderr}` : ''),
    );
  });
}

/** hledger's closing balance of every account, as CSV. */
export function hledgerBalances(file: string): string {
  const args = ['-f', file, 'balance', '--flat', '--no-total', '--layout=bare', '-O', 'csv'];
  const [command = ''] = checks.hledger(file);
  return execFileSync(command, args, { encoding: 'utf8', env: packageEnvironment() });
}

const absent = new Set<JournalTool>();
for (const tool of ['beancount', 'hledger'] as const)
  if (!isInstalled(checks[tool]('')[0] ?? '')) absent.add(tool);
for (const tool of absent)
  process.stderr.write(`\n*** NOT CHECKED: ${tool} IS NOT INSTALLED (apt-get install ${tool})\n\n`);

export function isAbsent(tool: JournalTool): boolean {
  return absent.has(tool);
}

/** A suffix for the name of a test that needs the tool: it says that the check was skipped if the tool is missing. */
export function absence(tool: JournalTool): string {
  return absent.has(tool) ? `: NOT CHECKED, ${tool.toUpperCase()} IS NOT INSTALLED` : '';
}

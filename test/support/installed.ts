import { execFileSync } from 'node:child_process';
import { processEnvironment } from '../../src/base/config/environment.ts';

/**
 * Whether a command of a package that npm does not have is on this machine.
 * @param option with which the command only says its version
 */
export function isInstalled(command: string, option = '--version'): boolean {
  return isInstalledWith(command, [option]);
}

/** The same for a command that does nothing else with these arguments, such as an interpreter that imports a package. */
export function isInstalledWith(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore', env: packageEnvironment() });
    return true;
  } catch {
    return false;
  }
}

/** Added to the names of tests that need what is missing, and said on standard error; empty where nothing is. */
export function notChecked(subject: string, missing: readonly string[], why = 'NOT INSTALLED'): string {
  if (missing.length === 0) return '';
  const words = `: NOT CHECKED, ${missing.join(' AND ')} ${why}`;
  process.stderr.write(`\n*** ${subject}${words}\n\n`);
  return words;
}

/** The environment of such commands: nothing of this process's but the search path. */
export function packageEnvironment(): { readonly PATH: string; readonly LC_ALL: string } {
  return { PATH: processEnvironment()['PATH'] ?? '', LC_ALL: 'C.UTF-8' };
}

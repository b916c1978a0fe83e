import { execFileSync } from 'node:child_process';
import { processEnvironment } from '../../src/config/environment.ts';

/** Whether a command of a package that npm does not have is on this machine. */
export function isInstalled(command: string): boolean {
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore', env: packageEnvironment() });
    return true;
  } catch {
    return false;
  }
}

/** The environment of such commands: nothing of this process's but the search path. */
export function packageEnvironment(): { readonly PATH: string; readonly LC_ALL: string } {
  return { PATH: processEnvironment()['PATH'] ?? '', LC_ALL: 'C.UTF-8' };
}

import { execFileSync } from 'node:child_process';
import { homedir } from 'node:os';
import path from 'node:path';
import { processEnvironment } from '../../src/base/config/environment.ts';
import { childEnvironment } from './child-environment.ts';
import { root } from './pages.ts';

const { NODE_EXTRA_CA_CERTS } = processEnvironment();

/** npm as its user has it: a registry, its certificates and a cache. */
export const npmVariables: Readonly<Record<string, string>> = {
  npm_config_userconfig: path.join(homedir(), '.npmrc'),
  npm_config_cache: path.join(homedir(), '.npm'),
  ...(NODE_EXTRA_CA_CERTS !== undefined && { NODE_EXTRA_CA_CERTS }),
};

/** Whether packages can be installed here. */
export function canInstall(): boolean {
  if (process.platform !== 'linux' || process.arch !== 'x64') return false;
  try {
    const env = { ...childEnvironment(), ...npmVariables };
    execFileSync('npm', ['view', 'express@5', 'version', '--prefer-online'], { env, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Packs what is published into a folder. */
export function packTo(folder: string): void {
  execFileSync(process.execPath, ['scripts/pack.ts', '--out', folder], {
    cwd: root,
    env: { ...childEnvironment(), HOME: folder },
  });
}

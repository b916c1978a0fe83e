import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { processEnvironment } from '../../src/base/config/environment.ts';

export interface InstalledNode {
  readonly command: string;
  /** As `24.21.0`. */
  readonly version: string;
  /** Whether the gateway runs on it. The runner library runs on all of them. */
  readonly isSupported: boolean;
}

/** This Node, and those of other major versions in PATH or in `RUNNER_NODES`, which has paths like PATH. */
export function installedNodes(): InstalledNode[] {
  const { PATH = '', RUNNER_NODES = '' } = processEnvironment();
  const folders = `${RUNNER_NODES}${path.delimiter}${PATH}`
    .split(path.delimiter)
    .filter((folder) => folder !== '');
  const byMajor = new Map<number, InstalledNode>();
  for (const command of [process.execPath, ...folders.map((folder) => path.join(folder, 'node'))]) {
    const version = versionOf(command);
    const [major = 0, minor = 0] = version?.split('.').map(Number) ?? [];
    if (version === undefined || major < 20 || byMajor.has(major)) continue;
    byMajor.set(major, { command, version, isSupported: major > 22 || (major === 22 && minor >= 19) });
  }
  const found = [...byMajor.values()];
  for (const major of [20, 22]) {
    if (!byMajor.has(major))
      process.stderr.write(
        `\n*** NOT CHECKED: THE RUNNER ON NODE ${major}, WHICH IS NOT IN PATH (npm run old-versions)\n\n`,
      );
  }
  return found;
}

function versionOf(command: string): string | undefined {
  try {
    return execFileSync(command, ['-p', 'process.versions.node'], { encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    return undefined;
  }
}

export interface InstalledCompiler {
  /** Of the package `typescript`. */
  readonly dir: string;
  readonly version: string;
}

/** The TypeScript of this repository, then those in `RUNNER_COMPILERS`, which has paths like PATH. */
export function installedCompilers(): InstalledCompiler[] {
  const { RUNNER_COMPILERS = '' } = processEnvironment();
  const others = RUNNER_COMPILERS.split(path.delimiter).filter((dir) => dir !== '');
  const own = path.resolve(import.meta.dirname, '../../node_modules/typescript');
  return [own, ...others].map((dir) => {
    const { version } = JSON.parse(readFileSync(path.join(dir, 'package.json'), 'utf8')) as {
      version: string;
    };
    return { dir, version };
  });
}

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { processEnvironment } from '../../src/base/config/environment.ts';
import { root } from './pages.ts';

const run = promisify(execFile);

export interface PackageManifest {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly bundleDependencies: readonly string[];
  readonly [key: string]: unknown;
}

export interface PackedProject {
  /** A folder with both packages in its node_modules, and with what npm installs with them; no others. */
  readonly consumer: string;
  /** The packages that npm installs with the gateway's. */
  readonly installed: readonly string[];
  /** Of the processes that made the packages. */
  readonly processorSecs: number;
  /** Without what the surrounding npm and vitest set. */
  readonly env: Readonly<Record<string, string>>;
  /** Installs a package of the repository too. */
  link(name: string): Promise<void>;
  remove(): Promise<void>;
}

/** Packs the packages, and installs the files in a new project. */
export async function packProject(): Promise<PackedProject> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tollbook-package-'));
  const consumer = path.join(folder, 'consumer');
  const bin = path.join(root, 'node_modules/.bin');
  const env = { PATH: `${bin}${path.delimiter}${processEnvironment()['PATH'] ?? ''}`, HOME: folder };
  const command = `"${process.execPath}" scripts/pack.ts --out "${folder}" && times`;
  const { stdout } = await run('sh', ['-c', command], { cwd: root, env });
  const link = async (name: string): Promise<void> => {
    const place = path.join(consumer, 'node_modules', name);
    await mkdir(path.dirname(place), { recursive: true });
    await symlink(path.join(root, 'node_modules', name), place);
  };
  const { version } = await readManifest(root);
  for (const [file, name] of [
    ['tollbook', 'tollbook'],
    ['tollbook-runner', '@tollbook/runner'],
  ] as const) {
    const place = path.join(consumer, 'node_modules', name);
    await mkdir(place, { recursive: true });
    await run('tar', [
      '-xzf',
      path.join(folder, `${file}-${version}.tgz`),
      '-C',
      place,
      '--strip-components=1',
    ]);
  }
  await writeFile(path.join(consumer, 'package.json'), '{"type": "module", "private": true}');
  const { dependencies, bundleDependencies } = await readManifest(
    path.join(consumer, 'node_modules/tollbook'),
  );
  const installed = Object.keys(dependencies).filter((name) => !bundleDependencies.includes(name));
  for (const name of installed) await link(name);
  return {
    consumer,
    installed,
    processorSecs: childrenSecs(stdout),
    env,
    link,
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

export async function readManifest(dir: string): Promise<PackageManifest> {
  return JSON.parse(await readFile(path.join(dir, 'package.json'), 'utf8')) as PackageManifest;
}

/** Reads the last line of `times`: the time of the shell's children in user and in system mode. */
function childrenSecs(output: string): number {
  const [, ...times] = /(\d+)m([\d.]+)s (\d+)m([\d.]+)s\n$/.exec(output) ?? [];
  const [userMins = NaN, userSecs = NaN, systemMins = NaN, systemSecs = NaN] = times.map(Number);
  return (userMins + systemMins) * 60 + userSecs + systemSecs;
}

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { childEnvironment } from './child-environment.ts';
import { packageEnvironment } from './installed.ts';
import { npmVariables } from './npm.ts';
import { type Program, spawnProgram, temporaryFolder } from './program.ts';

const root = path.resolve(import.meta.dirname, '../..');

function git(...args: readonly string[]): string {
  return execFileSync('git', ['-C', root, ...args], { encoding: 'utf8', env: packageEnvironment() }).trim();
}

/** Why this checkout cannot show its earlier versions; undefined if it can. */
export function whyNoHistory(): string | undefined {
  try {
    return git('rev-parse', '--is-shallow-repository') === 'true' ? 'A SHALLOW CLONE' : undefined;
  } catch {
    return 'NO GIT CHECKOUT';
  }
}

/** The commits from `first` to the one before this, at equal distances with both ends; then the tags since `first`. Full hashes. */
export function versionsSince(first: string, count: number): string[] {
  const commits = git('rev-list', '--reverse', '--first-parent', `${first}^..HEAD~1`).split('\n');
  const spaced = Array.from(
    { length: count },
    (_, index) => commits[Math.round((index * (commits.length - 1)) / (count - 1))] ?? first,
  );
  const tags = git('tag', '--list', 'v*', '--contains', first, '--format=%(objectname)');
  return [...new Set([...spaced, ...tags.split('\n').filter((tag) => tag !== '')])];
}

export interface Version {
  readonly commit: string;
  /** The numbered migrations that it has. */
  readonly migrations: readonly string[];
  /** Starts its `tollbook`. The caller stops it. */
  spawn(args: readonly string[], env?: Readonly<Record<string, string>>): Program;
}

/** The files of a commit, with this checkout's packages if it depends on the same ones; for one test. */
export function checkOut(commit: string): Version {
  const dir = temporaryFolder();
  const archive = execFileSync('git', ['-C', root, 'archive', commit], {
    env: packageEnvironment(),
    maxBuffer: 1 << 28,
  });
  execFileSync('tar', ['-x', '-C', dir], { input: archive, env: packageEnvironment() });
  if (dependenciesOf(dir) === dependenciesOf(root))
    symlinkSync(path.join(root, 'node_modules'), path.join(dir, 'node_modules'));
  else
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], {
      cwd: dir,
      env: { ...childEnvironment(), ...npmVariables },
    });
  const entry = ['src/app/cli/tollbook.ts', 'src/cli/tollbook.ts'].find((file) =>
    existsSync(path.join(dir, file)),
  );
  return {
    commit,
    migrations: migrationsIn(commit),
    spawn: (args, env) =>
      spawnProgram(
        [process.execPath, '--import', './scripts/check-node.mjs', entry ?? '', ...args],
        dir,
        env,
      ),
  };
}

function dependenciesOf(dir: string): string {
  const { dependencies } = JSON.parse(readFileSync(path.join(dir, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  return JSON.stringify(dependencies);
}

function migrationsIn(commit: string): string[] {
  return git('ls-tree', '--name-only', commit, 'migrations/')
    .split('\n')
    .flatMap((name) => /(\d+-.*)\.sql$/.exec(name)?.[1] ?? []);
}

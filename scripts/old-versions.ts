/**
 * `npm run old-versions` installs Node 20, 22 and 24 and TypeScript 5.5 and 5.9 from npm into a temporary directory, and tests the packed
 * packages with each of them. Linux only.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { processEnvironment } from '../src/base/config/environment.ts';

const nodes = [20, 22, 24];
const compilers = ['5.5', '5.9'];
const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-versions-'));
const modules = path.join(dir, 'node_modules');
try {
  const packages = [
    ...nodes.map((major) => `node-${major}@npm:node-linux-${process.arch}@${major}`),
    ...compilers.map((version) => `typescript-${version}@npm:typescript@${version}`),
  ];
  execFileSync('npm', ['install', '--prefix', dir, '--no-audit', '--no-fund', ...packages], {
    stdio: 'inherit',
  });
  const RUNNER_NODES = nodes.map((major) => path.join(modules, `node-${major}`, 'bin')).join(path.delimiter);
  const RUNNER_COMPILERS = compilers
    .map((one) => path.join(modules, `typescript-${one}`))
    .join(path.delimiter);
  const { status } = spawnSync(
    process.execPath,
    ['node_modules/vitest/vitest.mjs', 'run', 'test/runner/package.rig.ts'],
    { stdio: 'inherit', env: { ...processEnvironment(), RUNNER_NODES, RUNNER_COMPILERS } },
  );
  process.exitCode = status ?? 1;
} finally {
  rmSync(dir, { recursive: true, force: true });
}

/** `npm run fuzz -- --seed N --requests N`: the long form of fuzz.rig.ts, see README.md beside this file. */
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { processEnvironment } from '../../src/base/config/environment.ts';

const { values } = parseArgs({ options: { seed: { type: 'string' }, requests: { type: 'string' } } });
const requests = Number(values.requests ?? 20_000);
if (!Number.isInteger(requests) || requests < 100 || requests > 10_000_000)
  throw new Error('--requests is a whole number from 100 to 10000000');
const seed = values.seed ?? String(Date.now() % 1_000_000);

const program = [
  'node_modules/vitest/vitest.mjs',
  'run',
  'test/fuzz/fuzz.rig.ts',
  '--disable-console-intercept',
];
const child = spawn(process.execPath, program, {
  stdio: 'inherit',
  env: { ...processEnvironment(), FUZZ_SEED: seed, FUZZ_REQUESTS: String(requests) },
});
child.once('exit', (code, signal) => {
  process.exitCode = signal === null ? (code ?? 1) : 1;
});

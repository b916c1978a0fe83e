/**
 * Runs the tests and says what they cost: `npm run test:costs -- [ARGUMENTS OF VITEST]`, such as `--project rigs` or a part of a file's path. Prints the fifty dearest files, the thirty dearest tests,
 * and the processor time by cause. Needs Linux: it reads /proc.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { childrenMs, type Spent } from '../test/support/meter.ts';
import { costsFileVariable } from '../test/support/service-costs.ts';

interface Report {
  readonly numTotalTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly duration?: number;
      readonly meta: { readonly spent?: Spent };
    }[];
  }[];
}

interface Cost {
  readonly name: string;
  readonly tests: number;
  readonly ownMs: number;
  readonly childrenMs: number;
  readonly wallMs: number;
}

const root = path.resolve(import.meta.dirname, '..');
const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-costs-'));
const [reportFile, servicesFile] = [path.join(dir, 'report.json'), path.join(dir, 'services')];
const vitest = ['--import', './scripts/check-node.mjs', 'node_modules/vitest/vitest.mjs', 'run'];
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
const given = process.argv.slice(2);
const project = given.some((argument) => argument.startsWith('--project')) ? [] : ['--project=tests'];
const startedMs = performance.now();
const { status } = spawnSync(process.execPath, [...vitest, ...reporters, ...project, ...given], {
  cwd: root,
  stdio: 'inherit',
  // oxlint-disable-next-line node/no-process-env -- handed on as it is
  env: { ...process.env, [costsFileVariable]: servicesFile },
});
const wallSecs = (performance.now() - startedMs) / 1_000;
const report = JSON.parse(readFileSync(reportFile, 'utf8')) as Report;
const services = readFileSync(servicesFile, 'utf8').trim().split('\n');
rmSync(dir, { recursive: true, force: true });

const files = report.testResults.map(({ name, assertionResults }) =>
  sumOf(path.relative(root, name), assertionResults),
);
const tests = report.testResults.flatMap(({ name, assertionResults }) =>
  assertionResults.map((one) => sumOf(`${path.relative(root, name)}: ${one.fullName}`, [one])),
);
table('The fifty dearest files', files, 50);
table('The thirty dearest tests', tests, 30);

const causes = new Map<string, number>();
const add = (cause: string, ms: number): void => void causes.set(cause, (causes.get(cause) ?? 0) + ms);
for (const { assertionResults } of report.testResults)
  for (const { meta } of assertionResults) {
    for (const [cause, ms] of Object.entries(meta.spent?.own ?? {})) add(cause, ms);
    add('child processes of tests', meta.spent?.childrenMs ?? 0);
  }
for (const line of services) {
  const [name = '', ms = ''] = line.split('\t');
  add(name, Number(ms));
}
const allMs = childrenMs();
const knownMs = [...causes.values()].reduce((sum, ms) => sum + ms, 0);
add('the rest: Vitest, transforms, ends of workers', allMs - knownMs);
console.log('\nProcessor time by cause, in seconds');
for (const [cause, ms] of [...causes].toSorted(([, a], [, b]) => b - a))
  console.log(`${seconds(ms)}  ${cause}`);
const total = `${report.numTotalTests} tests in ${report.testResults.length} files`;
console.log(`${seconds(allMs)}  all, for ${total}, in ${wallSecs.toFixed(0)} s`);
process.exitCode = status ?? 1;

function sumOf(name: string, results: Report['testResults'][number]['assertionResults']): Cost {
  const spents = results.map(({ meta }) => meta.spent);
  const ownMs = spents.flatMap((spent) => Object.values(spent?.own ?? {})).reduce((sum, ms) => sum + ms, 0);
  const ofChildrenMs = spents.reduce((sum, spent) => sum + (spent?.childrenMs ?? 0), 0);
  const wallMs = results.reduce((sum, { duration = 0 }) => sum + duration, 0);
  return { name, tests: results.length, ownMs, childrenMs: ofChildrenMs, wallMs };
}

function table(title: string, rows: readonly Cost[], count: number): void {
  console.log(`\n${title}: processor seconds of the worker and of its child processes, seconds of the tests`);
  const dearest = rows.toSorted((a, b) => b.ownMs + b.childrenMs - a.ownMs - a.childrenMs).slice(0, count);
  for (const row of dearest) {
    const parts = [row.ownMs, row.childrenMs, row.wallMs].map(seconds).join(' ');
    console.log(`${parts}  ${row.name}${row.tests === 1 ? '' : ` (${row.tests} tests)`}`);
  }
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1).padStart(7);
}

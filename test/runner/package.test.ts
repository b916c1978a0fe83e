import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { processEnvironment } from '../../src/config/environment.ts';
import { createDatabase } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import { type Answer, runnerSecret, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { expectSoundLedger } from '../support/invariants.ts';
import { readPage } from '../support/pages.ts';
import { payFor } from '../support/payer.ts';
import { eventually } from '../support/wait.ts';

const run = promisify(execFile);
const repo = path.resolve(import.meta.dirname, '../..');
const bin = path.join(repo, 'node_modules/.bin');

/** What a package is made of, and some that it must not hold. */
const sources = [
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'README.md',
  'LICENSE',
  'CONTRIBUTING.md',
].concat(['src', 'scripts', 'migrations', 'config', 'test/runner', 'examples']);

const chain = useChain();
/** Instead of the runner that calls are pushed to. */
const pollerTable = `
[[runners]]
services = [1]
mode = "lease"
token_env = "RUNNER_TOKEN"
`;

/** A project that has installed the package. */
let consumer: string;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'tollbook-package-'));
  const tarball = await pack(path.join(folder, 'source'));
  consumer = path.join(folder, 'consumer');
  const installed = path.join(consumer, 'node_modules/tollbook');
  await mkdir(installed, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  await linkDependencies(path.join(consumer, 'node_modules'));
  await writeFile(path.join(consumer, 'package.json'), '{"type": "module", "private": true}');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Packs a copy of the sources, so that the work tree gets no dist/ and two packs at once do not meet. */
async function pack(source: string): Promise<string> {
  await mkdir(source);
  for (const name of sources) await cp(path.join(repo, name), path.join(source, name), { recursive: true });
  await symlink(path.join(repo, 'node_modules'), path.join(source, 'node_modules'));
  const options = [
    '--json',
    '--offline',
    '--ignore-scripts=false',
    '--no-update-notifier',
    '--loglevel=error',
  ];
  await run('npm', ['pack', ...options], { cwd: source, env: quietEnvironment() }).catch(
    ({ stdout, stderr }: { stdout: string; stderr: string }) => {
      throw new Error(`npm pack failed: ${stdout}${stderr}`);
    },
  );
  const tarball = (await readdir(source)).find((name) => name.endsWith('.tgz'));
  return path.join(source, tarball ?? 'no tarball');
}

/** The dependencies that `npm install tollbook` installs, and those of every TypeScript project for Node; no others. */
async function linkDependencies(modules: string): Promise<void> {
  const { dependencies } = JSON.parse(await readFile(path.join(repo, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  for (const name of [...Object.keys(dependencies), '@types/node']) {
    await mkdir(path.dirname(path.join(modules, name)), { recursive: true });
    await symlink(path.join(repo, 'node_modules', name), path.join(modules, name));
  }
}

/** Without what the surrounding npm and vitest set. */
function quietEnvironment(): Record<string, string> {
  return { PATH: `${bin}${path.delimiter}${processEnvironment()['PATH'] ?? ''}`, HOME: folder };
}

async function startProgram(name: string, text: string, env: Record<string, string>): Promise<ChildProcess> {
  await writeFile(path.join(consumer, name), text);
  const child = spawn(process.execPath, [name], {
    cwd: consumer,
    env: { ...quietEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function* linesOf(child: ChildProcess): AsyncGenerator<string> {
  if (child.stdout) yield* createInterface({ input: child.stdout });
}

/** The program of docs/runners.md. */
function documentedRunner(): string {
  const program = readPage('docs/runners.md').blocks.find(({ language }) => language === 'js');
  return program?.text ?? 'throw new Error("docs/runners.md has no runner")';
}

/** Takes leases, and nothing comes of them. */
const hangingRunner = `
import { createRunner, job } from 'tollbook/runner';

const began = ({ callId }) => {
  console.log('began ' + callId);
  return new Promise(() => {});
};
const jobs = [0, 1].map((jobIndex) => job({ serviceId: 1, jobIndex, on: { x402: began } }));
const runner = createRunner({ jobs });
const { GATEWAY_URL, RUNNER_TOKEN } = process.env;
await runner.poll({ gatewayUrl: GATEWAY_URL, token: RUNNER_TOKEN, leaseSecs: 5 });
`;

/** What the receipts hold; undefined where there is no result yet. */
function resultsOf(gateway: TestGateway, paid: readonly Answer[]): Promise<(string | undefined)[]> {
  return Promise.all(
    paid.map(async ({ json: { quote_digest, receipt_token } }) => {
      const headers = { authorization: `Bearer ${receipt_token}` };
      const { json } = await gateway.get(`/x402/receipts/${quote_digest}`, headers);
      const { result } = json as { result?: { body_base64: string } | null };
      return result ? Buffer.from(result.body_base64, 'base64').toString('utf8') : undefined;
    }),
  );
}

async function endGently(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await exited).toEqual([0, null]);
}

const typedConsumer = `
import { z } from 'zod';
import { type GatewayOptions, startGateway } from 'tollbook';
import { createRunner, type Handler, job, type JobCall, Refuse, RetryLater, type Runner } from 'tollbook/runner';

const typed = job({
  serviceId: 1,
  jobIndex: 0,
  input: z.object({ n: z.number() }),
  on: { x402: ({ input, signal }) => ({ twice: input.n * 2, aborted: signal.aborted }) },
});
const plain: Handler = async (call: JobCall) => {
  if (call.attempt > 3) throw new Refuse('enough');
  // @ts-expect-error: a job without a schema has no input
  call.input.n;
  // @ts-expect-error: the body is bytes
  const text: string = call.body;
  throw new RetryLater(text, { afterSecs: 1 });
};
// @ts-expect-error: a call has no such field
job({ serviceId: 1, jobIndex: 2, on: { x402: (call) => call.nothing } });
// @ts-expect-error: the input is an object with a number
job({ serviceId: 1, jobIndex: 3, input: z.object({ n: z.number() }), on: { x402: ({ input }) => input.m } });
const runner: Runner = createRunner({ jobs: [typed, job({ serviceId: 1, jobIndex: 1, on: { x402: plain } })] });
export const polled: Promise<void> = runner.poll({ gatewayUrl: 'https://gateway.example', token: 'x' });
// @ts-expect-error: a gateway requires a config, which proves that the types are included
const options: GatewayOptions = { databaseUrl: '' };
export const url: string = (await startGateway(options)).url;
`;

describe('the packed package', () => {
  test('contains the files it needs and no others', async () => {
    const installed = path.join(consumer, 'node_modules/tollbook');
    const names = (await readdir(installed)).toSorted();
    expect(names).toEqual([
      'LICENSE',
      'README.md',
      'config',
      'dist',
      'migrations',
      'package.json',
      'scripts',
    ]);
    expect(await readdir(path.join(installed, 'migrations'))).toEqual(
      await readdir(path.join(repo, 'migrations')),
    );
    expect(await readdir(path.join(installed, 'config'))).toEqual(['example.toml']);
    const compiled = await readdir(path.join(installed, 'dist'), { recursive: true });
    expect(compiled.filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))).toEqual([]);
    const { scripts } = JSON.parse(await readFile(path.join(installed, 'package.json'), 'utf8')) as {
      scripts: { postinstall: string };
    };
    // what npm does after it has installed it
    await run('sh', ['-c', scripts.postinstall], { cwd: installed, env: quietEnvironment() });
  });

  test('runs the runner of docs/runners.md with pushed calls', async () => {
    const env = { RUNNER_TOKEN: runnerSecret, PORT: '0' };
    const child = await startProgram('runner.mjs', documentedRunner(), env);
    const { value: runnerUrl } = (await linesOf(child).next()) as { value: string };
    const gateway = await startTestGateway({ database: await createDatabase(), chain, runnerUrl });
    const paid = [
      await payFor(gateway, '/x402/jobs/1/0', 'hello'),
      await payFor(gateway, '/x402/jobs/1/1', '{"n":21}'),
    ];
    await eventually(async () =>
      expect(await resultsOf(gateway, paid)).toEqual(['you said hello', '{"twice":42}']),
    );
    expect((await fetch(runnerUrl, { method: 'POST', body: 'unsigned' })).status).toBe(401);
    await endGently(child);
  });

  test('runs the polling runner of docs/runners.md: the calls of a killed process return, and each completes once', async () => {
    const database = await createDatabase();
    const gateway = await startTestGateway({ database, chain, tables: pollerTable });
    const env = { GATEWAY_URL: gateway.url, RUNNER_TOKEN: runnerSecret };
    const paid = [
      await payFor(gateway, '/x402/jobs/1/0', 'hello'),
      await payFor(gateway, '/x402/jobs/1/1', '{"n":21}'),
    ];
    const hanging = await startProgram('hanging.mjs', hangingRunner, env);
    const begun = linesOf(hanging);
    const taken = new Set([(await begun.next()).value, (await begun.next()).value]);
    expect(taken).toEqual(new Set(paid.map(({ json }) => `began ${json.call_id}`)));
    hanging.kill('SIGKILL');
    await once(hanging, 'exit');
    const child = await startProgram('runner.mjs', documentedRunner(), env);
    // the leases of the dead run out
    await database.moveClock(10);
    await eventually(async () =>
      expect(await resultsOf(gateway, paid)).toEqual(['you said hello', '{"twice":42}']),
    );
    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    const ofType = (type: string): number => events.filter((event) => event.type === type).length;
    expect([ofType('delivered'), ofType('completed'), ofType('dead_lettered')]).toEqual([4, 2, 0]);
    await endGently(child);
  });

  test('has types that compile without its sources', async () => {
    await writeFile(path.join(consumer, 'consumer.ts'), typedConsumer);
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'esnext', '--types', 'node'];
    const { stdout } = await run(path.join(bin, 'tsc'), [...options, '--skipLibCheck', 'consumer.ts'], {
      cwd: consumer,
      env: quietEnvironment(),
    }).catch((error: { stdout: string }) => error);
    expect(stdout).toBe('');
  });

  test('has a command that shows its usage, and exports startGateway', async () => {
    const command = path.join(consumer, 'node_modules/tollbook/dist/cli/tollbook.js');
    const { stdout } = await run(process.execPath, [command, '--help'], { env: quietEnvironment() });
    expect(stdout).toContain('Usage: tollbook COMMAND');
    // finds its migrations, and nothing to do
    const { url } = await createDatabase();
    await run(process.execPath, [command, 'migrate'], { env: { ...quietEnvironment(), DATABASE_URL: url } });
    const script = "import { startGateway } from 'tollbook'; console.log(typeof startGateway)";
    const evaluated = await run(process.execPath, ['--input-type=module', '-e', script], {
      cwd: consumer,
      env: quietEnvironment(),
    });
    expect(evaluated.stdout).toBe('function\n');
  });
});

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import {
  type Answer,
  runnerSecret,
  startTestGateway,
  type TestGateway,
  startWithDatabase,
} from '../support/gateway.ts';
import { expectSoundLedger } from '../support/invariants.ts';
import { type PackedProject, packProject } from '../support/packed-project.ts';
import { readPage } from '../support/pages.ts';
import { payFor } from '../support/payer.ts';
import { eventually } from '../support/wait.ts';
import { leaseToken, startFakeGateway } from './fake-gateway.ts';
import { installedCompilers, installedNodes } from './other-versions.ts';
import { post, pushed, secret } from './support.ts';

const run = promisify(execFile);

const chain = useChain();
const nodes = installedNodes();
const compilers = installedCompilers();
/** Instead of the runner that calls are pushed to. */
const pollerTable = `
[[runners]]
services = [1]
mode = "lease"
token = "env:RUNNER_TOKEN"
`;

/** A project that has installed the packages. */
let packed: PackedProject;

beforeAll(async () => {
  packed = await packProject();
  // what every TypeScript project for Node has, and the example of docs/runners.md
  for (const name of ['zod', '@types/node']) await packed.link(name);
});
afterAll(() => packed.remove());

async function startProgram(
  name: string,
  text: string,
  env: Record<string, string>,
  node = process.execPath,
): Promise<ChildProcess> {
  await writeFile(path.join(packed.consumer, name), text);
  const child = spawn(node, [name], {
    cwd: packed.consumer,
    env: { ...packed.env, ...env },
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

/** Takes calls both ways; some it cannot do. */
const runnerOfBothWays = `
import { createRunner, job } from '@tollbook/runner';

const work = ({ body }) => {
  if (body.toString() === 'no') throw new Error('cannot do it');
  return 'did it';
};
const runner = createRunner({ jobs: [job({ serviceId: 1, jobIndex: 0, on: { x402: work } })], concurrency: 4 });
const { GATEWAY_URL, LEASE_TOKEN, PUSH_SECRET } = process.env;
const { url } = await runner.listen({ secret: PUSH_SECRET });
process.once('SIGTERM', () => void runner.stop());
console.log(url);
await runner.poll({ gatewayUrl: GATEWAY_URL, token: LEASE_TOKEN });
`;

/** Takes leases, and nothing comes of them. */
const hangingRunner = `
import { createRunner, job } from '@tollbook/runner';

const began = ({ callId }) => {
  console.log('began ' + callId);
  return new Promise(() => {});
};
const jobs = [0, 1].map((jobIndex) => job({ serviceId: 1, jobIndex, on: { x402: began } }));
const runner = createRunner({ jobs });
const { GATEWAY_URL, RUNNER_TOKEN } = process.env;
await runner.poll({ gatewayUrl: GATEWAY_URL, token: RUNNER_TOKEN, leaseSecs: 5 });
`;

/** What the receipts hold; undefined if there is no result yet. */
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

const typedRunner = `
import { z } from 'zod';
import { createRunner, type Handler, job, type JobCall, Refuse, RetryLater, type Runner } from '@tollbook/runner';

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
`;

const typedGateway = `
import { createLogger, type GatewayOptions, loadConfig, startGateway } from 'tollbook';
import { createPricingEngine, keySigner, servePricing } from 'tollbook/pricing';
import type { GetJobPriceRequest, PricingEngine, PricingServer, QuoteSigner, X402Option } from 'tollbook/pricing';

// @ts-expect-error: a gateway requires a config, which proves that the types are included
const options: GatewayOptions = { databaseUrl: '' };
const gateway = await startGateway(options);
export const url: string = gateway.url;
// as a KMS has it
const signer: QuoteSigner = { address: '', sign: async (digest: Uint8Array) => digest };
keySigner('');
const x402: X402Option | undefined = gateway.quotes;
export const server: Promise<PricingServer> = servePricing({
  engine: createPricingEngine({ prices: () => new Map(), signer, x402 }),
  bind: { host: '::1', port: 0 },
  limits: { maxStreams: 1 },
});
export const engine: PricingEngine = createPricingEngine({ prices: new Map(), signer, x402: gateway.quotes });
// the types of bundled packages are there: zod's, pino's and Protobuf's
// @ts-expect-error: the configuration has no such key
(await loadConfig('')).config.nothing;
// @ts-expect-error: nor has one of its lists
(await loadConfig('')).config.runners[0]?.nothing;
// @ts-expect-error: a logger has no such function
createLogger('info').nothing();
declare const request: GetJobPriceRequest;
// @ts-expect-error: a message has no such field
request.nothing;
// @ts-expect-error: an engine requires prices
createPricingEngine({ signer });
`;

/** What the compiler says; empty if all is well. */
async function compile(compilerDir: string, args: readonly string[]): Promise<string> {
  const command = path.join(compilerDir, 'bin/tsc');
  const options = { cwd: packed.consumer, env: packed.env };
  const { stdout } = await run(process.execPath, [command, ...args], options).catch(
    (error: { stdout: string }) => error,
  );
  return stdout;
}

describe('the packed packages', () => {
  test.each(nodes)(
    'the runner library takes pushed and leased calls on Node $version, and a handler that throws costs it no slot',
    async ({ command }) => {
      const gateway = await startFakeGateway();
      onTestFinished(() => gateway.close());
      const env = { GATEWAY_URL: gateway.url, LEASE_TOKEN: leaseToken, PUSH_SECRET: secret };
      const child = await startProgram('both-ways.mjs', runnerOfBothWays, env, command);
      const { value: url } = (await linesOf(child).next()) as { value: string };
      const pushAll = async (body: string): Promise<number[]> => {
        const calls = Array.from({ length: 40 }, (_, at) =>
          pushed({ id: 100 + at + (body === 'no' ? 0 : 100), body }),
        );
        const statuses: number[] = [];
        for (const call of calls) statuses.push((await post(url, call)).status);
        return statuses;
      };
      expect(new Set(await pushAll('no'))).toEqual(new Set([500]));
      expect(new Set(await pushAll('yes'))).toEqual(new Set([200]));
      const ids = [1, 2, 3, 4, 5, 6, 7, 8];
      gateway.offer(...ids.map((id) => ({ id })));
      await eventually(() => expect([...gateway.completed.keys()].toSorted((a, b) => a - b)).toEqual(ids));
      await endGently(child);
    },
  );

  test.each(nodes.filter(({ isSupported }) => !isSupported))(
    'the gateway says on Node $version what it needs, as a command and as a library',
    async ({ command }) => {
      const dir = path.join(packed.consumer, 'node_modules/tollbook');
      const needs = /^Node v[\d.]+ cannot run Tollbook: it needs 22\.19 or newer\. Nothing was started\.$/m;
      const options = { cwd: packed.consumer, env: packed.env };
      const asCommand = run(command, [path.join(dir, 'bin.mjs'), 'serve'], options);
      await expect(asCommand).rejects.toMatchObject({
        code: 2,
        stderr: expect.stringMatching(needs) as string,
      });
      const asLibrary = run(
        command,
        [
          '--input-type=module',
          '-e',
          "await import('tollbook').catch(({ message }) => console.log(message))",
        ],
        options,
      );
      expect((await asLibrary).stdout).toMatch(needs);
    },
  );

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
    const { database, gateway } = await startWithDatabase({ chain, tables: pollerTable });
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

  test.each(compilers)(
    'the types of the runner library compile with TypeScript $version, libraries checked',
    async ({ dir }) => {
      await writeFile(path.join(packed.consumer, 'runner.ts'), typedRunner);
      const options = [
        '--noEmit',
        '--strict',
        '--module',
        'nodenext',
        '--target',
        'es2022',
        '--types',
        'node',
      ];
      expect(await compile(dir, [...options, 'runner.ts'])).toBe('');
    },
  );

  test('the types of the gateway compile without its sources', async () => {
    await writeFile(path.join(packed.consumer, 'gateway.ts'), typedGateway);
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'esnext', '--types', 'node'];
    expect(await compile(compilers[0]?.dir ?? '', [...options, '--skipLibCheck', 'gateway.ts'])).toBe('');
  });

  test('the gateway has a command that shows its usage, exports startGateway, and answers prices', async () => {
    const command = path.join(packed.consumer, 'node_modules/tollbook/bin.mjs');
    const { stdout } = await run(process.execPath, [command, '--help'], { env: packed.env });
    expect(stdout).toContain('Usage: tollbook COMMAND');
    // finds its migrations, and nothing to do
    const { url } = await createDatabase();
    await run(process.execPath, [command, 'migrate'], { env: { ...packed.env, DATABASE_URL: url } });
    const script = `
      import { startGateway } from 'tollbook';
      import { createPricingEngine, keySigner, servePricing } from 'tollbook/pricing';
      const signer = keySigner('0x' + '11'.repeat(32));
      const engine = createPricingEngine({ prices: new Map([['1/0', 256n]]), signer });
      const server = await servePricing({ engine, bind: { host: '127.0.0.1', port: 0 } });
      const url = server.url + '/tollbook.pricing.v1.PricingService/GetJobPrice';
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(url, { method: 'POST', headers, body: '{"serviceId":"1"}' });
      const { quoteDetails } = await answer.json();
      console.log(typeof startGateway, answer.status, Buffer.from(quoteDetails.price, 'base64').toString('hex'));
      console.log(await server.stop());`;
    const evaluated = await run(process.execPath, ['--input-type=module', '-e', script], {
      cwd: packed.consumer,
      env: packed.env,
    });
    expect(evaluated.stdout).toBe('function 200 0100\n{ requestsCut: 0 }\n');
  });
});

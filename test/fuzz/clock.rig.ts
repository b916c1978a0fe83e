import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { processEnvironment } from '../../src/base/config/environment.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { createRandom, type Random } from '../chaos/random.ts';
import { browserOf, signInOperator } from '../support/console.ts';
import { useChain } from '../support/devnet.ts';
import { clientOf, configText, receiptKey } from '../support/gateway.ts';
import { identitySecret } from '../support/identity.ts';
import { maxPieceMs } from '../support/main-thread.ts';
import { destroy, spawnProgram, temporaryFolder } from '../support/program.ts';
import { timeLimits } from '../support/time-limits.ts';
import { configuredSecrets, wholeOptions } from '../support/whole-gateway.ts';
import { withAuthActions } from './auth-actions.ts';
import { issueCredentials } from './credentials.ts';
import { aimed, heavier } from './heavy.ts';
import { judgeOf } from './judge.ts';
import { createKnownValues } from './known-values.ts';
import { drawRequest, type FuzzDocument, operationsIn, type SentRequest } from './requests.ts';
import { createTraffic } from './traffic.ts';

const env = processEnvironment();
const requests = Number(env['CLOCK_REQUESTS'] ?? 1_500);
const seed = env['FUZZ_SEED'] ?? 'clock';
/** A request that waits only for something is left after a while, and the next one follows; any other is waited for. */
const waits = /runner\/leases|console\/live|receipts/;
const patienceMs = { ofWaits: 300, ofOthers: 20_000 };
const requestsPerCredentials = 2_000;
/** A piece that is too long comes each time its request is sent; a collection of garbage does not. */
const maxTries = 4;

const chain = useChain();

/** A list that has to differ throughout, texts with a pattern, and a schema that refers to itself. */
const schema = {
  type: 'object',
  properties: {
    list: {
      type: 'array',
      uniqueItems: true,
      items: { type: 'object', properties: { a: { type: 'string' } } },
    },
    slow: { type: 'string', pattern: '^(a+)+$' },
    tree: { $ref: '#/$defs/tree' },
    text: { type: 'string', maxLength: 100_000 },
  },
  $defs: {
    tree: { anyOf: [1, 2, 3].map(() => ({ type: 'array', items: { $ref: '#/$defs/tree' }, minItems: 1 })) },
  },
};
const jobs = (file: string): string => `
[job_prices.1]
0 = "1000000000000000"
1 = "1"
[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"
[[job_policies]]
service_id = 1
job_index = 1
invocation_mode = "public_paid"
input_schema_file = "${file}"
`;
const tables = `
[pages]
[console]
[[triggers]]
name = "orders"
kind = "webhook"
service_id = 1
job_index = 0
secret = "env:RUNNER_TOKEN"
`;

/** A gateway as its own process, with the clock in it. */
async function startGateway() {
  const dir = temporaryFolder();
  const schemaFile = path.join(dir, 'schema.json');
  writeFileSync(schemaFile, JSON.stringify(schema));
  const options = await wholeOptions(chain, { tables, jobs: jobs(schemaFile) });
  const [port, clockPort] = [await freePort(), await freePort()];
  const file = path.join(dir, 'gateway.toml');
  writeFileSync(file, configText({ ...options, bind: `127.0.0.1:${port}` }).replace('"silent"', '"error"'));
  const clock = `${new URL('clock.mjs', import.meta.url).href}?port=${clockPort}`;
  const root = path.resolve(import.meta.dirname, '../..');
  const words = [
    '--import',
    './scripts/check-node.mjs',
    '--import',
    clock,
    'src/app/cli/tollbook.ts',
    'serve',
  ];
  const program = spawnProgram([process.execPath, ...words, '--config', file], root, {
    ...configuredSecrets,
    RECEIPT_KEY: receiptKey,
    SESSION_SECRET: identitySecret,
    DATABASE_URL: options.database.url,
  });
  onTestFinished(() => destroy(program));
  const url = `http://127.0.0.1:${port}`;
  await expect
    .poll(
      async () =>
        fetch(`${url}/x402/ready`).then(
          ({ ok }) => ok,
          () => false,
        ),
      { timeout: timeLimits.conditionMs },
    )
    .toBe(true);
  return {
    url,
    database: options.database,
    mailDir: options.mailDir,
    ...clientOf(url),
    clockUrl: `http://127.0.0.1:${clockPort}`,
    program,
  };
}

interface Clocked {
  readonly routes: readonly { readonly method: string; readonly url: string }[];
  readonly longestMs: Readonly<Record<string, number>>;
}

const readClock = async (url: string): Promise<Clocked> => (await (await fetch(url)).json()) as Clocked;

/** Forms of pages have no document: what their fields are called, and what is chosen or typed there. */
const formFields: Readonly<Record<string, readonly string[]>> = {
  as: ['json', 'change', 'x'],
  mode: ['whole', 'x'],
  body: ['{"a":1}', 'x'],
  ...Object.fromEntries(
    'code digest email form job list message model models name next order password reason slow text token'
      .split(' ')
      .map((name) => [name, ['1', 'x', 'ada@example.org']]),
  ),
};

function drawForm(url: string, random: Random): SentRequest {
  const names = Object.keys(formFields).filter(() => random.chance(0.6));
  const fields = names.map((name) => [name, random.pick(formFields[name] ?? [])] as [string, string]);
  const place = url.replaceAll(/:\w+/g, () => random.pick(['1', '1', '1', '0', 'x'])).replace('*', 'x');
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  return { method: 'POST', path: place, headers, body: Buffer.from(new URLSearchParams(fields).toString()) };
}

test(
  `no request of ${requests} over every route takes more than 50 ms of the main thread's processor time in one piece`,
  async () => {
    const gateway = await startGateway();
    const random = createRandom(seed);
    const known = createKnownValues();
    const document = withAuthActions(
      (await (await fetch(`${gateway.url}/openapi.json`)).json()) as FuzzDocument,
    );
    const documented = operationsIn(document);
    const templates = new Set(
      documented.map(({ template, method }) => `${method.toUpperCase()} ${template}`),
    );
    const { routes } = await readClock(gateway.clockUrl);
    const pages = routes.filter(
      ({ method, url }) => !templates.has(`${method} ${url.replaceAll(/:(\w+)/g, '{$1}')}`),
    );
    const operator = browserOf(gateway, await signInOperator(gateway));
    const cookie = [...operator.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const traffic = createTraffic(gateway.url, await judgeOf(gateway));
    let credentials = await issueCredentials(gateway);
    const longestMs = new Map<string, number>();
    const draw = (turn: number): { readonly name: string; readonly request: SentRequest } => {
      const at = turn % (documented.length + pages.length);
      const operation = documented[at];
      if (operation)
        return {
          name: `${operation.method.toUpperCase()} ${operation.template}`,
          request: drawRequest(document, operation, { credentials, known, random }),
        };
      const { method, url } = pages[at - documented.length] ?? { method: 'GET', url: '/' };
      const form = drawForm(url, random);
      const drawn: SentRequest = method === 'POST' ? form : { ...form, method, headers: {}, body: undefined };
      const headers = {
        ...drawn.headers,
        accept: 'text/html',
        origin: gateway.url,
        cookie: random.pick([cookie, '', String(credentials.byScheme['session']?.['cookie'])]),
      };
      return { name: `${method} ${url}`, request: { ...drawn, headers } };
    };
    const next = (turn: number): readonly [name: string, SentRequest] => {
      if (random.chance(0.15)) return aimed(random, credentials.byScheme['apiKey'] ?? {});
      const { name, request } = draw(turn);
      return [name, random.chance(0.6) ? heavier(request, random) : request];
    };
    for (let turn = 0; turn < requests; turn++) {
      if (turn % requestsPerCredentials === requestsPerCredentials - 1)
        credentials = await issueCredentials(gateway);
      const [name, sent] = next(turn);
      const headers = { ...sent.headers, 'x-clock': name };
      let pieceMs = Infinity;
      for (let tries = 1; tries <= maxTries && pieceMs > maxPieceMs; tries++) {
        await Promise.race([
          traffic.ask(name, { ...sent, headers }),
          sleep(waits.test(name) ? patienceMs.ofWaits : patienceMs.ofOthers, undefined, { ref: false }),
        ]);
        pieceMs = Math.min(pieceMs, (await readClock(gateway.clockUrl)).longestMs[name] ?? 0);
      }
      longestMs.set(name, Math.max(pieceMs, longestMs.get(name) ?? 0));
    }
    await traffic.close();
    const longest = [...longestMs].toSorted(([, a], [, b]) => b - a);
    if (env['CLOCK_REQUESTS'] !== undefined)
      for (const [name, ms] of longest) {
        const statuses = [...(traffic.counts.get(name) ?? [])].map((pair) => pair.join(' × ')).join(', ');
        process.stdout.write(`${ms.toFixed(1).padStart(8)} ms  ${name}: ${statuses}\n`);
      }
    const faults = [...traffic.findings]
      .filter(([finding]) => /no answer|status 500/.test(finding))
      .map((one) => one.join('\n   '));
    expect({ faults, tooLong: longest.filter(([, ms]) => ms > maxPieceMs) }).toEqual({
      faults: [],
      tooLong: [],
    });
  },
  timeLimits.rigMs + requests * 100,
);

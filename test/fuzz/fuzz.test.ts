import { expect, test } from 'vitest';
import { issueApiKey } from '../../src/identity/api-keys.ts';
import { processEnvironment } from '../../src/config/environment.ts';
import { operatorScopes } from '../../src/domain/identity/operator-scope.ts';
import { issueOperatorToken } from '../../src/identity/operator-tokens.ts';
import { createRandom } from '../chaos/random.ts';
import { fund, laneOn } from '../support/credit.ts';
import { useChain } from '../support/devnet.ts';
import { documentOf } from '../support/documented.ts';
import { createBrowser, signInByWallet } from '../support/identity.ts';
import { expectSoundLedger } from '../support/invariants.ts';
import { logLines } from '../support/log-lines.ts';
import { header, offerOf, payFor, signOffer } from '../support/payer.ts';
import { configuredSecrets, startWholeGateway, type WholeGateway } from '../support/whole-gateway.ts';
import {
  type Credentials,
  drawRequest,
  type FuzzDocument,
  type FuzzRequest,
  operationsIn,
} from './requests.ts';

const env = processEnvironment();
const seed = env['FUZZ_SEED'] ?? 'short form';
const requests = Number(env['FUZZ_REQUESTS'] ?? 600);
/** The clients that ask at the same time. */
const clients = 8;
/** One process: the generator, the checks and the gateway share it, so the bounds leave room for the first two. */
const maxBlockMs = 250;
const maxGrowthMib = 300;

const chain = useChain();
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** One of each kind of credentials, valid ones and wrong ones. */
async function credentialsOf(gateway: WholeGateway): Promise<Credentials> {
  const { database, url } = gateway;
  const lane = laneOn(database);
  const accountId = await fund(database, lane, 1_000_000_000n);
  const { key } = await issueApiKey({ ...database, lane }, { accountId, name: 'fuzz' });
  const { token } = await issueOperatorToken({ ...database, lane }, { name: 'fuzz', scopes: operatorScopes });
  await lane.close();
  const browser = createBrowser(url, '203.0.113.1');
  await signInByWallet(browser);
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const paid = await payFor(gateway, '/x402/jobs/1/0');
  const payment = header(await signOffer(offerOf(await gateway.post('/x402/jobs/1/0', { body: 'x' }))));
  const byScheme = {
    apiKey: bearer(key),
    operatorToken: bearer(token),
    runnerToken: bearer(configuredSecrets.RUNNER_TOKEN),
    receiptToken: bearer(String(paid.json.receipt_token)),
    session: { cookie, origin: url },
  };
  const wrong = [{}, bearer('wrong'), { cookie: `${cookie}x` }, { cookie, origin: 'https://other.example' }];
  return { byScheme, others: [...wrong, payment, ...Object.values(byScheme)] };
}

/**
 * How much CPU the process takes between two turns of its event loop, at the 99.9th percentile. Unlike the time that passes, it does
 * not grow with the load of the machine.
 */
function measureBlocks(): { readonly stop: () => number } {
  const samples: number[] = [];
  let last = process.cpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.cpuUsage(last);
    last = process.cpuUsage();
    samples.push((user + system) / 1_000);
  }, 5);
  return {
    stop() {
      clearInterval(timer);
      return samples.toSorted((a, b) => a - b)[Math.floor(samples.length * 0.999)] ?? 0;
    },
  };
}

/** The faults of an answer; empty for what the document allows. */
type Judge = (request: FuzzRequest, answer: Answer) => readonly string[];

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function judgeOf(gateway: WholeGateway): Promise<Judge> {
  const check = await documentOf(gateway);
  const secrets = Object.values(configuredSecrets);
  return ({ method, path }, answer) => {
    const faults: string[] = [];
    const all = `${JSON.stringify([...answer.headers])}\n${answer.text}`;
    if (secrets.some((secret) => all.includes(secret))) faults.push('a secret in the answer');
    if (/\n {4}at |node:internal|\/src\/\w+\/.*\.ts:\d/.test(all)) faults.push('a stack trace in the answer');
    // before a route is found the answer belongs to no operation
    const isRouteless = /"code":"(?:invalid_request|not_found|request_timeout|headers_too_large)"/.test(
      answer.text,
    );
    const isLibrary = path.startsWith('/api/auth/') && answer.status < 500;
    if (!isRouteless && !isLibrary) faults.push(...check(method, path, answer));
    if (answer.status === 500) faults.push('status 500');
    return faults;
  };
}

async function send(
  url: string,
  { method, path, headers, body }: FuzzRequest,
  address: string,
): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    headers: { 'x-forwarded-for': address, ...headers },
    redirect: 'manual',
    signal: AbortSignal.timeout(40_000),
    ...(body !== undefined && method !== 'GET' && { body }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

test(
  `${requests} requests drawn from the document's schemas get documented answers, and leave a sound ledger`,
  async () => {
    const log = logLines();
    const gateway = await startWholeGateway(chain, { logger: log.logger });
    const document = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as FuzzDocument;
    const operations = operationsIn(document);
    const judge = await judgeOf(gateway);
    const credentials = await credentialsOf(gateway);
    const random = createRandom(seed);
    // caches and compiled schemas fill during the first requests
    const warmUp = Math.floor(requests / 5);
    let startMib = 0;
    const blocks = measureBlocks();
    const findings = new Map<string, string>();
    const statuses = new Map<number, number>();
    const asked = new Set<string>();
    let sent = 0;
    const client = async (number: number): Promise<void> => {
      const own = random.fork(`client ${number}`);
      while (sent < requests) {
        // every operation in turn
        const operation = operations[sent % operations.length] ?? { template: '/', method: 'get' };
        sent += 1;
        if (sent === warmUp) startMib = process.memoryUsage().rss / 2 ** 20;
        const request = drawRequest(document, operation, credentials, own);
        const address = `198.18.${own.between(0, 255)}.${own.between(1, 254)}`;
        const name = `${request.method} ${operation.template}`;
        asked.add(name);
        let faults: readonly string[];
        let status = 0;
        try {
          const answer = await send(gateway.url, request, address);
          status = answer.status;
          faults = judge(request, answer);
        } catch (error) {
          faults = [
            `no answer: ${error instanceof Error ? `${error.message} ${String(error.cause)}` : String(error)}`,
          ];
        }
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        for (const fault of faults) {
          const key = `${name} ${status}: ${fault.replaceAll(/[0-9a-f]{16,}/g, '…').slice(0, 200)}`;
          if (!findings.has(key))
            findings.set(
              key,
              `${request.path.slice(0, 300)} ${JSON.stringify(request.headers).slice(0, 300)} ${request.body?.subarray(0, 300).toString() ?? ''}`,
            );
        }
      }
    };
    await Promise.all(Array.from({ length: clients }, (_, number) => client(number)));
    const blockMs = blocks.stop();
    const grownMib = process.memoryUsage().rss / 2 ** 20 - startMib;
    const counts = [...statuses]
      .toSorted(([a], [b]) => a - b)
      .map(([status, count]) => `${status}: ${count}`);
    const summary = `${sent} requests of seed ${seed}; ${counts.join(', ')}; event loop p99.9 ${blockMs.toFixed(0)} ms of CPU; memory +${grownMib.toFixed(0)} MiB`;
    if (env['FUZZ_REQUESTS'] !== undefined) process.stdout.write(`${summary}\n`);
    expect([...findings].map(([finding, request]) => `${finding}\n    ${request}`)).toEqual([]);
    expect(asked.size).toBe(operations.length);
    const errors = log.lines.filter(({ level }) => level >= 50);
    expect(errors).toEqual([]);
    expect(
      Object.values(configuredSecrets).filter((secret) => JSON.stringify(log.lines).includes(secret)),
    ).toEqual([]);
    expect(blockMs).toBeLessThan(maxBlockMs);
    expect(grownMib).toBeLessThan(maxGrowthMib);
    await gateway.database.asOwner((owner) => expectSoundLedger(gateway.database.db, owner));
  },
  60_000 + requests * 100,
);

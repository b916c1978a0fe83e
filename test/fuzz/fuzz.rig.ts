import { createPublicClient, http } from 'viem';
import { expect, test } from 'vitest';
import { processEnvironment } from '../../src/base/config/environment.ts';
import { createRandom, type Random } from '../chaos/random.ts';
import { useChain } from '../support/devnet.ts';
import { payTo } from '../support/gateway.ts';
import { expectSoundLedger } from '../support/invariants.ts';
import { slowness } from '../support/processor.ts';
import { timeLimits } from '../support/time-limits.ts';
import { eventually } from '../support/wait.ts';
import { startWholeGateway, type WholeGateway } from '../support/whole-gateway.ts';
import { withAuthActions } from './auth-actions.ts';
import { issueCredentials } from './credentials.ts';
import { judgeOf } from './judge.ts';
import { createKnownValues } from './known-values.ts';
import { createLogCheck } from './log-check.ts';
import { creditService, paymentFaults } from './paid-ledger.ts';
import { createPayer } from './payments.ts';
import { drawRequest, type FuzzDocument, operationsIn } from './requests.ts';
import { createTraffic, type Traffic } from './traffic.ts';

const env = processEnvironment();
const seed = env['FUZZ_SEED'] ?? 'short form';
const requests = Number(env['FUZZ_REQUESTS'] ?? 300);
/** The clients that ask at the same time. */
const clients = 8;
/** A request that takes longer, such as one that waits for a call, is awaited beside the next ones. */
const patienceMs = 100;
const maxAside = 100;
/** How long the last answers are awaited; a poll of a runner waits up to 30 seconds, which the short form does not await. */
const lastAnswersMs = requests < 5_000 ? 500 : 45_000;
/** How often a client pays in place of drawing a request. */
const paidChance = 0.02;
/** A password's hash costs as much as fifty other requests: these routes are asked for a quarter as often. */
const hashesPassword = /\/auth\/(?:sign-(?:in|up)\/email|change-password|reset-password)$/;
/** Credentials are issued again after as many requests. */
const requestsPerCredentials = 2_000;
/** One process: the generator, the checks and the gateway share it, so the bounds leave room for the first two. */
const maxBlockMs = 250 * slowness;
const maxGrowthMib = 300;

/** A job that sells credit, in place of a runner's call. */
const sellsCredit = `
[job_prices.${creditService}]
0 = "1000000000000000"
[[job_policies]]
service_id = ${creditService}
job_index = 0
invocation_mode = "public_paid"
[[top_ups]]
service_id = ${creditService}
job_index = 0
currency_per_token = { USDC = "1", EURC = "1.08" }
`;

const chain = useChain();

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

/** Asks for every operation in turn, from several clients, until as many requests were sent. */
async function sendAll(gateway: WholeGateway, traffic: Traffic, random: Random): Promise<string[]> {
  const document = withAuthActions(
    (await (await fetch(`${gateway.url}/openapi.json`)).json()) as FuzzDocument,
  );
  const operations = operationsIn(document);
  const known = createKnownValues();
  const payer = createPayer(traffic);
  const fromBlock = await createPublicClient({ transport: http(chain.rpcUrl) }).getBlockNumber();
  let credentials = await issueCredentials(gateway);
  const aside = new Set<Promise<unknown>>();
  let turns = 0;
  const isFirstRound = (): boolean => turns <= operations.length;
  const askOne = async (own: Random): Promise<void> => {
    const operation = operations[turns % operations.length] ?? { template: '/', method: 'get' };
    turns += 1;
    if (hashesPassword.test(operation.template) && !isFirstRound() && own.chance(0.75)) return;
    if (turns % requestsPerCredentials === 0) credentials = await issueCredentials(gateway);
    const drawn = drawRequest(document, operation, { credentials, known, random: own });
    const address = `198.18.${own.between(0, 255)}.${own.between(1, 254)}`;
    const request = { ...drawn, headers: { 'x-forwarded-for': address, ...drawn.headers } };
    const asked = traffic.ask(`${request.method} ${operation.template}`, request);
    aside.add(asked);
    void asked.finally(() => aside.delete(asked));
    const answer = await waitAtMost(patienceMs, asked);
    if (answer !== undefined && answer.status < 300) known.learn(answer.text);
    if (aside.size > maxAside) await Promise.race(aside);
  };
  const client = async (own: Random): Promise<void> => {
    while (traffic.sent() < requests) await (own.chance(paidChance) ? payer.turn(own) : askOne(own));
  };
  await Promise.all(Array.from({ length: clients }, (_, number) => client(random.fork(`client ${number}`))));
  await payer.turn(random);
  await waitAtMost(lastAnswersMs, Promise.all(aside));
  const unasked = operations.filter(
    ({ method, template }) => !traffic.counts.has(`${method.toUpperCase()} ${template}`),
  );
  expect(unasked).toEqual([]);
  const { db, asOwner } = gateway.database;
  return asOwner(async (owner) => {
    await eventually(async () => {
      const undone = await owner.query(
        "select status from tollbook.call where status = 'pending' or service_id = $1",
        [creditService],
      );
      expect(undone.rows).toEqual([]);
    });
    const events = await expectSoundLedger(db, owner);
    const tokens = [chain.token, chain.secondToken];
    const where = { rpcUrl: chain.rpcUrl, tokens, fromBlock, payTo };
    return paymentFaults(payer.signed, events, where);
  });
}

/** What a promise gives within the time; undefined when it takes longer. */
async function waitAtMost<T>(limitMs: number, work: Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => resolve(undefined), limitMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

test(
  `${requests} requests drawn from the document's schemas get documented answers, and leave a sound ledger`,
  async () => {
    const log = createLogCheck();
    const gateway = await startWholeGateway(chain, { logger: log.logger, tables: sellsCredit });
    const traffic = createTraffic(gateway.url, await judgeOf(gateway));
    // caches and compiled schemas fill during the first requests
    let startMib = 0;
    traffic.atSent(Math.floor(requests / 5), () => {
      startMib = process.memoryUsage().rss / 2 ** 20;
    });
    const blocks = measureBlocks();
    const startedMs = performance.now();
    const cpuBefore = process.cpuUsage();
    const faults = await sendAll(gateway, traffic, createRandom(seed));
    const blockMs = blocks.stop();
    const { user, system } = process.cpuUsage(cpuBefore);
    const perCpuSecond = traffic.sent() / ((user + system) / 1e6);
    const perSecond = traffic.sent() / ((performance.now() - startedMs) / 1_000);
    const grownMib = process.memoryUsage().rss / 2 ** 20 - startMib;
    await traffic.close();
    if (env['FUZZ_REQUESTS'] !== undefined) {
      process.stdout.write(
        `${traffic.sent()} requests of seed ${seed}, ${perSecond.toFixed(0)} per second, ${perCpuSecond.toFixed(0)} per second of CPU; event loop p99.9 ${blockMs.toFixed(0)} ms of CPU; memory +${grownMib.toFixed(0)} MiB\n`,
      );
      for (const [name, statuses] of traffic.counts)
        process.stdout.write(`  ${name}: ${[...statuses].map((pair) => pair.join(' × ')).join(', ')}\n`);
    }
    expect([...traffic.findings].map(([finding, request]) => `${finding}\n    ${request}`)).toEqual([]);
    expect(faults).toEqual([]);
    expect(log.faults).toEqual([]);
    expect(blockMs).toBeLessThan(maxBlockMs);
    expect(grownMib).toBeLessThan(maxGrowthMib);
  },
  timeLimits.rigMs + requests * 100,
);

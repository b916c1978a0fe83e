import { setTimeout as sleep } from 'node:timers/promises';
import { costMicros, parsePrice } from '../../src/base/values/price.ts';
import { countBatches, countEvents } from '../ledger.ts';
import type { Quantiles } from '../quantiles.ts';
import { costsOf, expectGrowth, order, type Stage } from '../measure.ts';
import { cpuSecs, machineBusySecs } from '../processes.ts';
import { price, usage } from './terms.ts';

/** The server under load. */
export interface ChatTarget {
  readonly name: string;
  /** `direct`: the upstream without a gateway, the reference of added latency. */
  readonly kind: 'direct' | 'tollbook' | 'peer';
  /** Undefined when the upstream itself is the server. */
  readonly pid: number | undefined;
  readonly url: string;
  /** One for each request, in turn. */
  readonly headers: readonly string[];
}

export interface ChatScenario {
  readonly title: string;
  readonly stream: boolean;
  readonly concurrency: number;
  readonly secs: number;
}

export interface ChatMeasurement extends Quantiles {
  readonly perSec: number;
  readonly firstEvent: Quantiles;
  /** Processor microseconds per request. */
  readonly serverCpuUs: number;
  readonly databaseCpuUs: number;
  /** Of the upstream and the load generator together. */
  readonly benchCpuUs: number;
  /** Processors that other programs kept busy during the measurement. */
  readonly foreignCores: number;
  /** Commands per batch of the lane; 0 without a lane. */
  readonly batchSize: number;
}

/** Numbers of admitted and settled completions. */
const appendsEach = 2;
const settleMs = 10_000;

/** Sends `count` requests and measures. Throws when a request fails or the ledger does not show all of them. */
export async function measureChat(
  stage: Stage,
  target: ChatTarget,
  { stream, concurrency }: Pick<ChatScenario, 'stream' | 'concurrency'>,
  count: number,
): Promise<ChatMeasurement> {
  const { kind, url, headers } = target;
  const booked = kind === 'tollbook' ? count : 0;
  try {
    const before = await readBooks(stage);
    const cpuBefore = readCpu(stage, target);
    const startedAt = performance.now();
    const sent = await order(stage.load, { op: 'send_chats', url, headers, stream, count, concurrency });
    // work that continues after the answer is part of its cost
    await settled(stage);
    const secs = (performance.now() - startedAt) / 1_000;
    const cpuAfter = readCpu(stage, target);
    const after = await readBooks(stage);
    expectGrowth('completions', after.asked - before.asked, count);
    expectGrowth('completions in the ledger', after.completed - before.completed, booked);
    expectGrowth('micros', after.usedMicros - before.usedMicros, booked * costEachMicros());
    return {
      perSec: count / sent.seconds,
      p50Ms: sent.p50Ms,
      p99Ms: sent.p99Ms,
      firstEvent: sent.firstEvent,
      ...costsOf(cpuBefore, cpuAfter, { count, seconds: secs, hasLedger: booked > 0 }),
      batchSize: booked > 0 ? (count * appendsEach) / (after.batches - before.batches) : 0,
    };
  } catch (error) {
    throw new Error(`${target.name}: ${count} completions at ${concurrency}`, { cause: error });
  }
}

async function readBooks({ ledger, stub }: Stage) {
  const completed = await countEvents(ledger, 'chat_completed');
  const batches = await countBatches(ledger);
  const { rows } = await ledger.pool.query<{ used: number }>(
    'select coalesce(sum(used), 0)::bigint as used from tollbook.account',
  );
  const { completions } = (await (await fetch(`${stub.url}/count`)).json()) as { completions: number };
  return { completed, batches, usedMicros: rows[0]?.used ?? 0, asked: completions };
}

/** Resolves once no completion holds credit any more. */
async function settled({ ledger }: Stage): Promise<void> {
  const deadline = Date.now() + settleMs;
  for (;;) {
    const { rowCount } = await ledger.pool.query('select from tollbook.chat_hold limit 1');
    if (rowCount === 0) return;
    if (Date.now() > deadline) throw new Error('completions are not settled');
    await sleep(5);
  }
}

function costEachMicros(): number {
  const inputNanosPerMillion = parsePrice(price.input) ?? 0n;
  const outputNanosPerMillion = parsePrice(price.output) ?? 0n;
  return Number(
    costMicros({
      promptTokens: usage.prompt_tokens,
      completionTokens: usage.completion_tokens,
      price: { inputNanosPerMillion, outputNanosPerMillion },
    }),
  );
}

function readCpu({ ledger, stub, load }: Stage, { pid }: ChatTarget) {
  return {
    server: pid === undefined ? 0 : cpuSecs(pid),
    database: cpuSecs(ledger.postmasterPid, true),
    bench: cpuSecs(stub.pid) + cpuSecs(load.pid),
    machine: machineBusySecs(),
  };
}

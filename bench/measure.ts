import { cpuSecs, machineBusySecs, type Program } from './processes.ts';
import { countBatches, countEvents, type Ledger } from './ledger.ts';
import type { Order, Sent } from './load.ts';
import type { RouteName } from './routes/terms.ts';

/** A server under load. */
export interface Target {
  readonly name: string;
  readonly isPeer: boolean;
  readonly pid: number;
  readonly url: string;
  /** Its own ledger, where it does not have the stage's. */
  readonly ledger?: Ledger;
  /** The server that issues the offers of its payments. */
  readonly offersUrl: string;
  /** Whether the facilitator is asked to verify each payment. */
  readonly verifies: boolean;
  /** Whether the server itself verifies the payer's signature. */
  readonly signed: boolean;
  /** The addresses of its clients, in turn; the system chooses without. */
  readonly from?: readonly string[] | undefined;
}

export interface Scenario {
  readonly title: string;
  readonly what: 'payments' | 'unpaid';
  /** A path of an HTTP API in place of the job. Of a stream, the times are those to the first byte. */
  readonly route?: RouteName;
  readonly concurrency: number;
  readonly secs: number;
  /** The rate to begin with. */
  readonly guessedPerSec?: number;
}

export interface Measurement {
  readonly perSec: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor microseconds per request. */
  readonly serverCpuUs: number;
  readonly databaseCpuUs: number;
  /** Of the stubs and the load generator together. */
  readonly benchCpuUs: number;
  /** Processors that other programs kept busy during the measurement. */
  readonly foreignCores: number;
  /** Commands per batch of the lane; 0 for a peer. */
  readonly batchSize: number;
}

export interface Stage {
  readonly ledger: Ledger;
  readonly stub: Program;
  readonly load: Program;
  /** The HTTP API behind the routes. */
  readonly upstream?: Program;
}

/** Sends one order to the load generator and returns its result. */
export async function order(load: Program, what: Order): Promise<Sent> {
  const answer = await load.ask<{ readonly sent: Sent } | { readonly error: string }>(what);
  if ('error' in answer) throw new Error(answer.error);
  return answer.sent;
}

/**
 * Sends `count` requests and measures.
 * @param before runs after the payments are made, before the clock starts
 * @throws when a request fails or the ledger does not show all of them
 */
export async function measure(
  shared: Stage,
  target: Target,
  { what, route, concurrency }: Pick<Scenario, 'what' | 'route' | 'concurrency'>,
  count: number,
  before?: () => Promise<void>,
): Promise<Measurement> {
  const { isPeer, url, offersUrl, signed, from, ledger = shared.ledger } = target;
  const stage = { ...shared, ledger };
  const isPaid = what === 'payments';
  try {
    if (isPaid) {
      const offers = isPeer ? 'one' : 'one_each';
      await order(stage.load, { op: 'make_payments', url: offersUrl, count, offers, signed, from, route });
    }
    await before?.();
    const booksBefore = await readBooks(stage);
    const cpuBefore = readCpu(stage, target);
    const status = isPaid ? (route ? 200 : 202) : 402;
    const sent = await order(stage.load, { op: 'send', url, what, count, concurrency, status, from, route });
    const cpuAfter = readCpu(stage, target);
    const booksAfter = await readBooks(stage);
    expectGrowth('settlements', booksAfter.settled - booksBefore.settled, isPaid ? count : 0);
    const booked = isPaid && !isPeer ? count : 0;
    expectGrowth('enqueued', booksAfter.enqueued - booksBefore.enqueued, booked);
    expectGrowth('completed', booksAfter.completed - booksBefore.completed, route ? booked : 0);
    expectGrowth('answers', booksAfter.answered - booksBefore.answered, route && isPaid ? count : 0);
    const batches = booksAfter.batches - booksBefore.batches;
    const { p50Ms, p99Ms } = route === 'stream' ? sent.firstEvent : sent;
    return {
      perSec: count / sent.seconds,
      p50Ms,
      p99Ms,
      ...costsOf(cpuBefore, cpuAfter, { count, seconds: sent.seconds, hasLedger: !isPeer }),
      batchSize: isPeer ? 0 : (count * (isPaid ? appendsOf(route) : 1)) / batches,
    };
  } catch (error) {
    throw new Error(`${target.name}: ${count} ${what} of ${route ?? 'a job'} at ${concurrency}`, {
      cause: error,
    });
  }
}

type ProcessorSecs = Readonly<Record<'server' | 'database' | 'bench' | 'machine', number>>;

/** What a run took of the processors, between two readings of the seconds that they have worked. */
export function costsOf(
  before: ProcessorSecs,
  after: ProcessorSecs,
  {
    count,
    seconds,
    hasLedger,
  }: { readonly count: number; readonly seconds: number; readonly hasLedger: boolean },
): Pick<Measurement, 'serverCpuUs' | 'databaseCpuUs' | 'benchCpuUs' | 'foreignCores'> {
  const grown = (key: keyof ProcessorSecs): number => after[key] - before[key];
  const cpuUs = (key: keyof ProcessorSecs): number => (grown(key) * 1e6) / count;
  return {
    serverCpuUs: cpuUs('server'),
    databaseCpuUs: hasLedger ? cpuUs('database') : 0,
    benchCpuUs: cpuUs('bench'),
    foreignCores:
      Math.max(0, grown('machine') - grown('server') - grown('database') - grown('bench')) / seconds,
  };
}

/** Of a payment. */
function appendsOf(route: RouteName | undefined): number {
  if (!route) return 2;
  return route === 'authorization' ? 3 : 4;
}

async function readBooks({ ledger, stub, upstream }: Stage) {
  const enqueued = await countEvents(ledger, 'enqueued');
  const completed = await countEvents(ledger, 'completed');
  const batches = await countBatches(ledger);
  const { settle } = await readCounts<{ settle: number }>(stub);
  const { answered } = upstream ? await readCounts<{ answered: number }>(upstream) : { answered: 0 };
  return { enqueued, completed, batches, settled: settle, answered };
}

async function readCounts<T>({ url }: Program): Promise<T> {
  return (await (await fetch(`${url}/count`)).json()) as T;
}

export function expectGrowth(what: string, found: number, expected: number): void {
  if (found !== expected) throw new Error(`${found} ${what} instead of ${expected}`);
}

function readCpu({ ledger, stub, load, upstream }: Stage, { pid }: Target) {
  return {
    server: cpuSecs(pid),
    database: cpuSecs(ledger.postmasterPid, true),
    bench: cpuSecs(stub.pid) + cpuSecs(load.pid) + (upstream ? cpuSecs(upstream.pid) : 0),
    machine: machineBusySecs(),
  };
}

/** The latency of one exchange with the stub alone, at concurrency 1. */
export async function measureExchange({ load, stub }: Stage): Promise<Sent> {
  return order(load, { op: 'ask_facilitator', url: stub.url, count: 2_000 });
}

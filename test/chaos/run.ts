import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { privateKeyToAddress } from 'viem/accounts';
import { createPublicClient, http } from 'viem';
import { lowerCase } from '../../src/devnet/accounts.ts';
import { createBook, type Book, type SignedOnce } from './book.ts';
import { type Cast, startCast } from './cast.ts';
import { type Checked, checkRun } from './checks/check-run.ts';
import type { Violation } from './checks/violation.ts';
import { createFreezer, type Freezer } from './freezer.ts';
import { createFrontRunner } from './front-runner.ts';
import { createMisfortune, type Misfortune } from './misfortune.ts';
import { moveClock, openCalls, waitForQuiet } from './quiet.ts';
import { createRandom } from './random.ts';
import { makeSchedule, type Mishap, type Schedule, type ScheduleOptions } from './schedule.ts';
import { makeVisit } from './visits.ts';
import type { World } from './world.ts';

export interface RunOptions extends ScheduleOptions {
  readonly world: World;
  readonly seed: string;
  readonly processes: number;
}

export interface RunReport {
  readonly run: number;
  readonly schedule: Schedule;
  readonly violations: readonly Violation[];
  readonly counts: ReadonlyMap<string, number>;
  readonly diary: readonly string[];
  /** Payments that were signed, that landed, that were accepted, that were refused. */
  readonly payments: PaymentCounts;
  readonly log: string;
  readonly ledger: string;
  /** What each client sent and was told, a line each. */
  readonly clients: readonly string[];
  readonly ms: number;
}

export interface PaymentCounts {
  readonly signed: number;
  readonly landed: number;
  readonly accepted: number;
  readonly refused: number;
  /** Refusals of payments that another request of the same client started later. */
  readonly excused: number;
}

/** Retries of clients still suffer for a while when the last has come: as long again, times this at least, and at most. */
const tail = { least: 0.6, most: 3 };
/** Where gateways are up again late, it goes on until so many settlements a visit have had their chance to go wrong. */
const settlesEach = 0.7;
/** Longer than a lease, and than the grace that a settle of a dead process is given. */
const movedSecs = 9;
const patienceMs = 30_000;

/** One run: everybody comes, everything goes wrong, quiet returns, and the books are compared. */
export async function makeRun(options: RunOptions): Promise<RunReport> {
  const { world, run, processes } = options;
  const startedAt = performance.now();
  const random = createRandom(`${options.seed}/${run}`);
  const schedule = makeSchedule(random.fork('schedule'), options);
  const misfortune = createMisfortune(random.fork('faults'), schedule.strikes);
  const database = `run_${run}`;
  const payTo = lowerCase(privateKeyToAddress(random.fork('pay to').hex32()));
  const book = createBook();
  const freezer = createFreezer();
  const frontRunner = createFrontRunner(world.chain, misfortune);
  const fromBlock = await createPublicClient({ transport: http(world.chain.url) }).getBlockNumber();
  await world.createDatabase(database);
  const cast = await startCast({ world, misfortune, freezer, book, frontRunner, database, payTo, processes });
  const deadline = new AbortController();
  try {
    await Promise.all(cast.gateways.map((gateway) => gateway.untilUp()));
    const urls = cast.gateways.map(({ url }) => url);
    const isStarted = (signed: SignedOnce) =>
      isInLedger(world.postgres.url(database), signed, deadline.signal);
    const visitParts = { urls, deadline: deadline.signal, world, book, frontRunner, isStarted };
    let isLoadOver = false;
    const visits = Promise.all(
      schedule.visits.map((visit) => makeVisit(visitParts, visit, random.fork(visit.id))),
    ).finally(() => (isLoadOver = true));
    // nobody may be left behind by a client's own mistake
    visits.catch(() => {});
    await Promise.all([
      suffer(misfortune, options),
      ...schedule.mishaps.map((mishap) => befall(mishap, world, freezer, misfortune)),
    ]);
    const left = await calmDown({
      world,
      database,
      cast,
      book,
      misfortune,
      freezer,
      isLoadOver: () => isLoadOver,
    });
    deadline.abort();
    await visits;
    const found = await checkRun({ world, database, cast, book, payTo, fromBlock, left });
    return {
      run,
      schedule,
      violations: found.violations,
      counts: misfortune.counts,
      diary: misfortune.diary,
      payments: countPayments(book, found),
      log: [...cast.gateways, ...cast.runners].map(({ log }) => log()).join('\n'),
      ledger: found.ledger,
      clients: book.presentations.map((one) => JSON.stringify(one)),
      ms: performance.now() - startedAt,
    };
  } finally {
    deadline.abort();
    freezer.thaw();
    await cast.stop();
    await world.dropDatabase(database);
  }
}

async function suffer(misfortune: Misfortune, { loadMs, visits }: ScheduleOptions): Promise<void> {
  const startedAt = performance.now();
  await sleep(loadMs * (1 + tail.least));
  const isEnough = (): boolean =>
    misfortune.drawn('settle') >= visits * settlesEach ||
    performance.now() - startedAt > loadMs * (1 + tail.most);
  while (!isEnough()) await sleep(50);
}

async function befall(
  { atMs, what }: Mishap,
  world: World,
  freezer: Freezer,
  misfortune: Misfortune,
): Promise<void> {
  await sleep(atMs);
  misfortune.note(what);
  freezer.thaw();
  await world.postgres.restart(what === 'crash_postgres' ? 'at_once' : 'in_order');
}

interface CalmParts {
  readonly world: World;
  readonly database: string;
  readonly cast: Cast;
  readonly book: Book;
  readonly misfortune: Misfortune;
  readonly freezer: Freezer;
  readonly isLoadOver: () => boolean;
}

/** Ends the misfortune and waits until nothing moves. Returns what still does when the patience is over. */
async function calmDown({
  world,
  database,
  cast,
  book,
  misfortune,
  freezer,
  isLoadOver,
}: CalmParts): Promise<string[]> {
  misfortune.end();
  misfortune.remark('the misfortune is over');
  freezer.thaw();
  for (const gateway of cast.gateways) gateway.thaw();
  await Promise.all(cast.gateways.map((gateway) => gateway.untilUp()));
  const owner = new pg.Client(world.postgres.url(database));
  await owner.connect();
  try {
    // what was held back arrives first: the clock must not overtake it
    await waitForQuiet(
      async () => (cast.pending() > 0 ? ['peers are being asked'] : []),
      2_000,
      misfortune.remark,
    );
    await moveClock(owner, movedSecs);
    return await waitForQuiet(
      async () => [
        ...(isLoadOver() ? [] : ['clients are waiting']),
        ...(await openCalls(owner, landedLate(book))),
      ],
      patienceMs,
      misfortune.remark,
    );
  } finally {
    await owner.end();
  }
}

function landedLate(book: Book): string[] {
  return [...book.landedLate].flatMap((key) => book.signed.get(key)?.nonce ?? []);
}

/** Asks until the database answers: it may be away. */
async function isInLedger(url: string, { nonce }: SignedOnce, deadline: AbortSignal): Promise<boolean> {
  while (!deadline.aborted) {
    const client = new pg.Client(url);
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query<{ is_started: boolean }>(
        `select exists (select from tollbook.claim where kind = 'payment' and key = $1) as is_started`,
        [nonce],
      );
      return rows[0]?.is_started ?? false;
    } catch {
      await sleep(100);
    } finally {
      await client.end().catch(() => {});
    }
  }
  return false;
}

function countPayments(book: Book, { landed, excused }: Checked): PaymentCounts {
  const ended = (end: string): number => book.presentations.filter((one) => one.end === end).length;
  return {
    signed: book.signed.size,
    landed,
    accepted: ended('accepted'),
    refused: ended('refused'),
    excused,
  };
}

import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readCounters } from '../src/ledger/store/counters.ts';
import { openDatabase } from '../src/ledger/store/database.ts';
import type { Bench } from './bench.ts';
import { readSizes, total } from './bytes/relations.ts';
import { type Ledger, readSettings, startLedger } from './ledger.ts';
import { expectGrowth, order } from './measure.ts';
import { paymentGateway } from './payment-targets.ts';
import { type Program, startProgram } from './processes.ts';
import { row, ruler, whole } from './report.ts';
import { startTollbook } from './tollbook.ts';

/**
 * Each has its own budget, by the defaults 600 requests a minute: 512 of them may ask 5,120 times a second. An address has one
 * connection, so this is also how many requests are in flight.
 */
const addresses = Array.from({ length: 512 }, (_, at) => `127.0.${2 + (at >> 7)}.${1 + (at & 127)}`);
/** How many requests are sent before the clock is looked at. */
const chunk = 4_096;
/** The sums of the last second are recorded by then. */
const sumsMs = 2_500;

const columns = ['A flood of 402s', 'seconds', 'quotes', 'quotes/s', 'events', 'bytes kept', 'bytes/s'];

/** What requests without a payment leave in the ledger, at the highest rate that one machine sends and answers. */
export const floodPart = {
  async compare(bench: Bench): Promise<string> {
    const secs = bench.rounds === 1 ? 3 : 60;
    const stub = await bench.keep(startProgram('facilitator.ts'));
    const load = await bench.keep(startProgram('load.ts'));
    const lines = [row(columns), ruler(columns)];
    const ledger = await bench.keep(startLedger(path.join(bench.dir, 'pg'), {}));
    const settings = await readSettings(ledger);
    lines.push(await measureFlood(bench, { ledger, stub, load }, secs));
    return [
      ...lines,
      '',
      `- ${addresses.length} client addresses with one connection each and the default budget; unsealed, with read models. ` +
        `Bytes are those of all tables and indexes of the ledger, vacuumed. ${settings}`,
    ].join('\n');
  },

  profile: async (): Promise<string> => 'The flood has no profile.',
};

async function measureFlood(
  { keep, dir }: Bench,
  stage: { readonly ledger: Ledger; readonly stub: Program; readonly load: Program },
  secs: number,
): Promise<string> {
  const { ledger, load } = stage;
  const server = await keep(startTollbook(paymentGateway(stage, true, dir, 'requests_per_minute = 600')));
  const before = total(await readSizes(ledger.pool));
  const startedAt = performance.now();
  const elapsedSecs = (): number => (performance.now() - startedAt) / 1_000;
  let count = 0;
  let took = 0;
  for (; took < secs; took = elapsedSecs()) {
    await order(load, {
      op: 'send',
      url: server.url,
      what: 'unpaid',
      count: chunk,
      concurrency: addresses.length,
      from: addresses,
      status: 402,
    });
    count += chunk;
  }
  await sleep(sumsMs);
  const { asOfSeq, counters } = await readCounters(openDatabase(ledger.pool));
  expectGrowth('quotes', counters.quoted, count);
  const kept = total(await readSizes(ledger.pool)) - before;
  await server.stop();
  return row([
    'Tollbook, with its defaults',
    ...[took, count, count / took, asOfSeq, kept, kept / took].map((value) => whole(value)),
  ]);
}

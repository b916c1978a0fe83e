/**
 * What a payment's appends cost the database, both ways, beside the same rows inserted without checks: CPU of the connection's own
 * process and WAL, by batch size; and their rate beside that of pgbench, which writes the same rows.
 * `node bench/append.ts [SECONDS]`, for each of the sizes and ways; the default is 3.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type pg from 'pg';
import {
  appendStatement,
  encodeCommand,
  type EncodedCommand,
  type LaneCommand,
} from '../src/ledger/store/append-batch.ts';
import { openSession } from '../src/ledger/store/session.ts';
import { fullAnswer, uncontendedStatement } from '../src/ledger/store/uncontended.ts';
import { payment } from './append/payment.ts';
import { findPgbench, preparePgbench, runPgbench } from './append/pgbench.ts';
import { insertRaw } from './append/raw.ts';
import { startLedger } from './ledger.ts';

type Way = 'decided' | 'written' | 'raw';
type Send = (batch: readonly EncodedCommand[], commands: readonly LaneCommand[]) => Promise<number[]>;

const seconds = Number(process.argv[2] ?? 3);
const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-append-'));
const ledger = await startLedger(path.join(dir, 'pg'), {});

/** Sends batches one way; returns the ids of the calls that were added. */
function sender(client: pg.Client, way: Way): Send {
  const flusher = randomUUID();
  let no = 0;
  if (way === 'raw') return (_, commands) => insertRaw(client, commands);
  return async (batch) => {
    no++;
    const text =
      way === 'written'
        ? uncontendedStatement(1, flusher, no, no - 1, batch)
        : appendStatement(1, flusher, no, no - 1, batch);
    const result: pg.QueryResult | pg.QueryResult[] = await client.query(text ?? '');
    const row: { answer: Parameters<typeof fullAnswer>[0] | null } | undefined = (
      Array.isArray(result) ? result.at(-1) : result
    )?.rows[0];
    const answer = row?.answer ? fullAnswer(row.answer, batch) : undefined;
    if (!answer || 'halt' in answer) throw new Error('a batch was not recorded');
    return answer.results.map((one) => {
      if (one.outcome !== 'ok') throw new Error(`a command was answered: ${one.outcome}`);
      return 'call_id' in one ? (one.call_id ?? 0) : 0;
    });
  };
}

const steps = ['quote', 'start', 'settle'] as const;

/** The lower quartile: other programs share the processor, so the mean is further from the cost. */
const quartile = (list: number[]): number => list.toSorted((a, b) => a - b)[list.length >> 2] ?? 0;

interface Rate {
  /** By one connection that does nothing else. */
  readonly perSec: number;
  readonly row: string;
}

async function measure(way: Way, size: number): Promise<Rate> {
  const client = await openSession({ url: ledger.url });
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const cpuUs = (): number =>
    Number(readFileSync(`/proc/${rows[0]?.pid}/schedstat`, 'utf8').split(' ')[0]) / 1_000;
  const walBytes = async (): Promise<number> =>
    Number((await ledger.pool.query(`select pg_current_wal_insert_lsn() - '0/0' as wal`)).rows[0]?.wal);
  const send = sender(client, way);
  const costs: Record<(typeof steps)[number], number[]> = { quote: [], start: [], settle: [] };
  const timed = async (step: (typeof steps)[number], commands: LaneCommand[]): Promise<number[]> => {
    const batch = commands.map(encodeCommand);
    const before = cpuUs();
    const sentAt = performance.now();
    const ids = await send(batch, commands);
    sendingMs += performance.now() - sentAt;
    costs[step].push((cpuUs() - before) / size);
    return ids;
  };
  let sendingMs = 0;
  const start = performance.now();
  const wal = await walBytes();
  let payments = 0;
  while (performance.now() - start < seconds * 1_000) {
    const all = Array.from({ length: size }, payment);
    await timed(
      'quote',
      all.map(({ quote }) => quote),
    );
    const ids = await timed(
      'start',
      all.map((one) => one.start),
    );
    await timed(
      'settle',
      all.map((one, i) => one.settle(ids[i] ?? 0)),
    );
    payments += size;
  }
  const kilobytes = ((await walBytes()) - wal) / payments / 1_000;
  await client.end();
  const us = steps.map((step) => quartile(costs[step]).toFixed(0));
  const row = `| ${size} | ${way} | ${us.join(' | ')} | ${kilobytes.toFixed(1)} |\n`;
  return { perSec: (payments / sendingMs) * 1_000, row };
}

process.stdout.write(
  '| batch | way | quote µs | start µs | settle µs | WAL kB a payment |\n| --: | --- | --: | --: | --: | --: |\n',
);
const rates: string[] = [];
const pgbench = findPgbench();
if (pgbench) await preparePgbench(ledger.pool);
for (const size of [1, 8, 32]) {
  const perSec: Partial<Record<Way | 'pgbench', number>> = {};
  for (const way of ['decided', 'written', 'raw'] as const) {
    const measured = await measure(way, size);
    process.stdout.write(measured.row);
    perSec[way] = measured.perSec;
  }
  if (!pgbench) continue;
  perSec.pgbench = await runPgbench(pgbench, ledger.url, size, seconds);
  const ratio = (perSec.written ?? 0) / perSec.pgbench;
  const all = [perSec.decided, perSec.written, perSec.raw, perSec.pgbench].map((rate) => rate?.toFixed(0));
  rates.push(`| ${size} | ${all.join(' | ')} | ${ratio.toFixed(2)} |\n`);
}
process.stdout.write(
  pgbench
    ? '\n| batch | decided, payments/s | written | rows alone | pgbench | written × pgbench |\n| --: | --: | --: | --: | --: | --: |\n'
    : '\npgbench is not installed (apt-get install postgresql): the rate beside it was NOT measured\n',
);
process.stdout.write(rates.join(''));
await ledger.stop();
rmSync(dir, { recursive: true });

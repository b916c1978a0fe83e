/**
 * How much slower appends become while a snapshot stays open, as a dump keeps one: the database cannot clean up what appends
 * replace. `node bench/snapshot.ts [APPENDS [BATCH]]`, by default a million appends in batches of 32; 100000 is a short form.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { appendStatement, encodeCommand } from '../src/ledger/store/append-batch.ts';
import { openSession } from '../src/ledger/store/session.ts';
import { startLedger } from './ledger.ts';

const appends = Number(process.argv[2] ?? 1_000_000);
const perBatch = Number(process.argv[3] ?? 32);
const steps = 10;

const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-snapshot-'));
const ledger = await startLedger(path.join(dir, 'pg'), {});
const client = await openSession({ url: ledger.url });
const flusher = randomUUID();
let batchNo = 0;

const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
const pid = rows[0]?.pid;

/** The CPU time of the connection's own process so far, in milliseconds; a tick is 10. */
function cpuMs(): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Microseconds of one append, over a number of batches: elapsed, and of the database's processor. */
async function append(batches: number): Promise<{ readonly elapsed: number; readonly cpu: number }> {
  const start = performance.now();
  const cpu = cpuMs();
  for (let n = 0; n < batches; n++) {
    const commands = Array.from({ length: perBatch }, () =>
      encodeCommand({
        stream: `request:${randomUUID()}`,
        events: [{ type: 'request_refused', data: { code: 'job_not_found' } }],
      }),
    );
    await client.query(appendStatement(1, flusher, ++batchNo, batchNo - 1, commands));
  }
  const each = 1_000 / batches / perBatch;
  return { elapsed: (performance.now() - start) * each, cpu: (cpuMs() - cpu) * each };
}

const batchesPerStep = Math.ceil(appends / perBatch / steps);
await append(200);
const before = await append(Math.min(batchesPerStep, 1_000));
const show = (when: string, { elapsed, cpu }: typeof before): void =>
  void process.stdout.write(
    `${when}: ${elapsed.toFixed(0)} µs an append (${(elapsed / before.elapsed).toFixed(2)} ×), CPU ${cpu.toFixed(1)} µs (${(cpu / before.cpu).toFixed(2)} ×)\n`,
  );
show('without a snapshot', before);

const reader = new pg.Client(ledger.url);
await reader.connect();
await reader.query('begin isolation level repeatable read; select count(*) from tollbook.lane');
for (let step = 1; step <= steps; step++)
  show(`after ${step * batchesPerStep * perBatch} appends`, await append(batchesPerStep));
await reader.query('commit');
await append(200);
show('when it has ended', await append(1_000));
await reader.end();
await client.end();
await ledger.stop();
rmSync(dir, { recursive: true });

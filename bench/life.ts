/**
 * What PostgreSQL takes for the whole life of a payment, step by step, in batches of 1 and 32: CPU of the one connection that does it
 * all, and WAL. Without gateway, HTTP and chain, so that it says the same on a busy machine. `node bench/life.ts [ROUNDS]`
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openPool } from '../src/ledger/store/database.ts';
import { startLedger } from './ledger.ts';
import { paymentLife } from './life/payment-life.ts';

const rounds = Number(process.argv[2] ?? 6);
const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-life-'));
// no other work writes beside it, and no page is written whole
const settings = { autovacuum: 'off', max_wal_size: '8GB', checkpoint_timeout: '1h' };
const ledger = await startLedger(path.join(dir, 'pg'), settings);

interface Cost {
  readonly cpuUs: number;
  readonly walBytes: number;
}

/** The lower quartile: other programs share the processor, so the mean is further from the cost. */
const quartile = (list: readonly number[]): number => list.toSorted((a, b) => a - b)[list.length >> 2] ?? 0;

async function measure(batchSize: number, payments: number): Promise<void> {
  const pool = openPool({ url: ledger.url, maxConnections: 1 });
  const { rows } = await pool.query<{ pid: number }>('select pg_backend_pid() as pid');
  const cpuUs = (): number =>
    Number(readFileSync(`/proc/${rows[0]?.pid}/schedstat`, 'utf8').split(' ')[0]) / 1_000;
  const walBytes = async (): Promise<number> =>
    Number((await pool.query(`select pg_current_wal_insert_lsn() - '0/0' as wal`)).rows[0]?.wal);
  const costs = new Map<string, Cost[]>();
  // the first round only warms up
  for (let round = 0; round <= rounds; round++) {
    for (const [name, work] of paymentLife(pool, batchSize, payments)) {
      const wal = await walBytes();
      const cpu = cpuUs();
      await work();
      const cost = { cpuUs: (cpuUs() - cpu) / payments, walBytes: ((await walBytes()) - wal) / payments };
      if (round > 0) costs.set(name, [...(costs.get(name) ?? []), cost]);
    }
  }
  await pool.end();
  let all = { cpuUs: 0, walBytes: 0 };
  const line = (name: string, { cpuUs: us, walBytes: bytes }: Cost): string =>
    `| ${batchSize} | ${name} | ${us.toFixed(0)} | ${bytes.toFixed(0)} |\n`;
  for (const [name, list] of costs) {
    const cost = {
      cpuUs: quartile(list.map((one) => one.cpuUs)),
      walBytes: quartile(list.map((one) => one.walBytes)),
    };
    all = { cpuUs: all.cpuUs + cost.cpuUs, walBytes: all.walBytes + cost.walBytes };
    process.stdout.write(line(name, cost));
  }
  process.stdout.write(line('**all**', all));
}

process.stdout.write(
  '| batch | step | CPU µs a payment | WAL bytes a payment |\n| --: | --- | --: | --: |\n',
);
await measure(1, 12);
await measure(32, 64);
await ledger.stop();
rmSync(dir, { recursive: true });

/**
 * `node bench/metrics.ts [--calls 1000000]` measures a scrape of `/metrics`, and what the gateway reads for it in the background, with
 * this many payments in the read models, and then also with this many calls in the queue.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { fail, say } from '../src/base/terminal/terminal.ts';
import { countDeadLetters } from '../src/ledger/store/alerts.ts';
import { readWaitingCalls } from '../src/calls/store/calls.ts';
import { queriesOn } from '../src/ledger/store/database.ts';
import { readDeliveries, readHolds, readOpenSettlements } from '../src/ledger/store/backlogs.ts';
import { startLedger } from './ledger.ts';
import { cpuSecs } from './processes.ts';
import { startTollbook, type TollbookProcess } from './tollbook.ts';

const { values: flags } = parseArgs({ options: { calls: { type: 'string', default: '1000000' } } });
const calls = Number(flags.calls);
const services = 100;
const atOnce = 100_000;
const scrapes = 500;
const readings = 20;
const token = 'a-metrics-token-of-the-benchmark-only';
const dir = path.join(import.meta.dirname, '.tollbook', `metrics-${process.pid}`);
const nothing = 'http://127.0.0.1:9';

/** Payments that are over, in the read models. */
const paid = `
  insert into tollbook.payment (generation, decimals, seq, last_seq, at, service_id, job_index, call_id, network, asset, symbol, amount, payer,
      pay_to, state)
    select 1, 6, n, n, now(), n % ${services} + 1, 0, n, 'eip155:8453', '', 'USDC', 1000, decode(md5(n::text), 'hex'), '', 'completed'
    from generate_series($1::bigint, $2::bigint) n`;
const delivered = `
  insert into tollbook.paid_call (generation, attempts, call_id, seq, service_id, job_index, enqueued_at, status)
    select 1, 1, n, n, n % ${services} + 1, 0, now(), 'completed' from generate_series($1::bigint, $2::bigint) n`;

/** Calls of all states: every tenth was refused by its runner and pauses, every hundredth is a dead letter, some are leased or unsettled. */
const queued = `
  insert into tollbook.call (stream, service_id, job_index, status, body_id, network, symbol, failures, last_error, last_reason, due_at,
      created_at, payment)
    select md5(n::text), n % ${services} + 1, 0,
      case when n % 100 = 0 then 'dead' when n % 1000 = 1 then 'leased' when n % 1000 = 2 then 'pending' else 'ready' end,
      gen_random_uuid(), 'eip155:8453', 'USDC', case when n % 10 = 3 then 5 else 0 end,
      case when n % 10 = 3 or n % 100 = 0 then 'status 500: ' || repeat('x', 100) end,
      case when n % 10 = 3 or n % 100 = 0 then 'status_500' end,
      now() + case when n % 10 = 3 or n % 1000 = 1 then interval '1 hour' else - n * interval '1 millisecond' end,
      now() - n * interval '1 millisecond', md5(n::text)
    from generate_series($1::bigint, $2::bigint) n`;

const configText = (port: number): string => `
bind_address = "127.0.0.1:${port}"
facilitator_url = "${nothing}"
rate_per_native_unit = "3200.00"
markup_bps = 0
log_level = "silent"
[metrics]
token = "file:${path.join(dir, 'token')}"
[[accepted_tokens]]
network = "eip155:8453"
asset = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
symbol = "USDC"
decimals = 6
pay_to = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"
eip712_name = "USD Coin"
eip712_version = "2"
[job_prices.1]
0 = "1000000000000000"
[[job_policies]]
service_id = 1
job_index = 0
invocation_mode = "public_paid"
[[runners]]
services = [1]
mode = "lease"
token = "file:${path.join(dir, 'token')}"
`;

const spread = (times: readonly number[]): string => {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(1);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`;
};

async function timed(act: () => Promise<unknown>, count: number): Promise<string> {
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const startMs = performance.now();
    await act();
    times.push(performance.now() - startMs);
  }
  return spread(times);
}

async function scrape(url: string): Promise<string> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  if (response.status !== 200) throw new Error(`/metrics answered ${response.status}`);
  return response.text();
}

async function measure(title: string, { url, pid }: TollbookProcess, pool: pg.Pool): Promise<void> {
  // the gateway has read its figures twice
  await sleep(12_000);
  const text = await scrape(url);
  const before = cpuSecs(pid);
  const times = await timed(() => scrape(url), scrapes);
  const cpuMs = ((cpuSecs(pid) - before) * 1_000) / scrapes;
  const size = (text.length / 1_024).toFixed(0);
  say(`${title}: a scrape of ${size} KiB: ${times}, ${cpuMs.toFixed(1)} ms of the gateway's CPU`);
  const reads = {
    readWaitingCalls: () => readWaitingCalls(pool),
    readDeliveries: () => readDeliveries(pool),
    countDeadLetters: () => countDeadLetters(queriesOn(pool)),
    readOpenSettlements: () => readOpenSettlements(pool),
    readHolds: () => readHolds(pool),
  };
  for (const [name, read] of Object.entries(reads))
    say(`  in the background, ${name}: ${await timed(read, readings)}`);
}

async function main(): Promise<void> {
  mkdirSync(dir, { recursive: true });
  writeFileSync(path.join(dir, 'token'), token, { mode: 0o600 });
  const ledger = await startLedger(path.join(dir, 'pg'), { max_wal_size: '4GB' });
  try {
    // without the time limits of a gateway's connections
    const owner = new pg.Client(ledger.url);
    await owner.connect();
    const insert = async (statement: string): Promise<void> => {
      for (let from = 1; from <= calls; from += atOnce)
        await owner.query(statement, [from, Math.min(calls, from + atOnce - 1)]);
    };
    const gateway = await startTollbook({
      databaseUrl: ledger.url,
      configText,
      readyPath: '/x402/ready',
      dir,
    });
    try {
      await measure('an empty ledger', gateway, ledger.pool);
      const count = calls.toLocaleString('en-US');
      await insert(paid);
      await insert(delivered);
      await owner.query('vacuum analyze');
      await measure(`${count} payments`, gateway, ledger.pool);
      await insert(queued);
      await owner.query('vacuum analyze tollbook.call');
      await measure(`${count} calls in the queue as well`, gateway, ledger.pool);
    } finally {
      await gateway.stop();
      await owner.end();
    }
  } finally {
    await ledger.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

main().catch((error: unknown) => {
  fail(String(error));
  process.exitCode = 1;
});

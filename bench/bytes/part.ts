import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Bench } from '../bench.ts';
import { readSettings, startLedger } from '../ledger.ts';
import { sealRest } from '../log-load.ts';
import { order, type Stage } from '../measure.ts';
import { paymentGateway } from '../payment-targets.ts';
import { cpuSecs, startProgram } from '../processes.ts';
import { startTollbook, type TollbookOptions } from '../tollbook.ts';
import { confirm, deliver, readModelsFollow } from './deliver.ts';
import { grownBy, readSizes, readWalPlace, readWritten } from './relations.ts';
import { type Step, stepsOf, tableOf } from './report.ts';

const token = 'a-token-of-the-bench-that-is-long-enough';

/** The gateway as the documentation recommends it: its quotes authenticate themselves. A runner leases its calls. */
function gatewayOf(stage: Stage, dir: string): TollbookOptions {
  const secret = path.join(dir, 'secret');
  writeFileSync(secret, token, { mode: 0o600 });
  const runner = `\n[[runners]]\nservices = [1]\nmode = "lease"\ntoken = "file:${secret}"\n`;
  const gateway = paymentGateway(stage, true, dir, undefined, runner);
  const keys = `receipt_key = "file:${secret}"\n`;
  return { ...gateway, configText: (port) => keys + gateway.configText(port) };
}

/** What whole payments leave and write: from the quote to the result, the confirmation on the chain and the read models. */
export const bytesPart = {
  async compare(bench: Bench): Promise<string> {
    const { keep, dir } = bench;
    // no other work writes beside the payments, and no checkpoint happens but the one that is asked for
    const settings = { autovacuum: 'off', max_wal_size: '8GB', checkpoint_timeout: '1h' };
    const ledger = await keep(startLedger(path.join(dir, 'pg'), settings));
    const stub = await keep(startProgram('facilitator.ts'));
    const load = await keep(startProgram('load.ts'));
    const stage = { ledger, stub, load };
    const { url } = await keep(startTollbook(gatewayOf(stage, dir)));
    const count = bench.rounds * 1_000;
    const run = (): Promise<Step[]> => measurePayments(stage, url, count);
    await run();
    await ledger.pool.query('checkpoint');
    const afterCheckpoint = await run();
    const later = await run();
    return [
      tableOf(later, afterCheckpoint, count),
      '',
      stepsOf(later, count),
      '',
      `- ${count} payments, 64 at a time, in each run. ${await readSettings(ledger)}`,
    ].join('\n');
  },

  profile: async (): Promise<string> => 'The bytes of a payment have no profile.',
};

/** Each step is measured for all payments together, and vacuumed before the next. */
async function measurePayments({ ledger, load }: Stage, url: string, count: number): Promise<Step[]> {
  const { pool, postmasterPid } = ledger;
  const steps: Step[] = [];
  let sizes = await readSizes(pool);
  const step = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const from = await readWalPlace(pool);
    const cpu = cpuSecs(postmasterPid, true);
    await work();
    const cpuUs = (cpuSecs(postmasterPid, true) - cpu) * 1e6;
    const to = await readWalPlace(pool);
    const written = await readWritten(pool, from, to);
    const after = await readSizes(pool);
    steps.push({ name, grown: grownBy(sizes, after), written, cpuUs });
    sizes = after;
  };
  const sent = { url, count, concurrency: 64 } as const;
  const quotes = { url, count, offers: 'one_each', signed: true } as const;
  await step('quotes', () => order(load, { op: 'make_payments', ...quotes }));
  await step('payment, up to its call', async () => {
    await order(load, { op: 'send', what: 'payments', status: 202, ...sent });
    await readModelsFollow(ledger);
  });
  await step('delivery', async () => {
    const delivered = await deliver(url, token);
    if (delivered !== count) throw new Error(`${delivered} calls were delivered instead of ${count}`);
    await readModelsFollow(ledger);
  });
  await step('confirmation on the chain', async () => {
    await confirm(ledger);
    await readModelsFollow(ledger);
  });
  await step('sealing', () => sealRest(ledger));
  return steps;
}

/**
 * `node bench/books.ts [--events 1000000] [--only 'refunds due']` times what an accountant runs at the end of a period, with its memory: `reconcile`, `refunds due` and
 * the exports, on a ledger of a tenth of the events and on all of them.
 */
import { mkdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { fail, say } from '../src/base/terminal/terminal.ts';
import { type Ledger, startLedger } from './ledger.ts';
import { eventsAJob, loadJobs, sealRest, signer } from './log-load.ts';
import { type Measured, runMeasured } from './measured-command.ts';
import { type SyntheticNode, startSyntheticNode } from './synthetic-node.ts';

const { values: flags } = parseArgs({
  options: { events: { type: 'string', default: '1000000' }, only: { type: 'string' } },
});
const isWanted = (what: string): boolean => flags.only === undefined || flags.only === what;
const formats = ['jsonl', 'csv', 'parquet', 'beancount', 'hledger', 'summary'] as const;
const dir = path.join(import.meta.dirname, '.tollbook', `books-${process.pid}`);
const nowSecs = (): number => Math.floor(Date.now() / 1_000);
const timeOf = (secs: number): string => new Date(secs * 1_000).toISOString();

async function measure(ledger: Ledger, node: SyntheticNode, jobs: number, fromSecs: number): Promise<void> {
  const toSecs = nowSecs() + 1;
  while (nowSecs() <= toSecs) await sleep(100);
  node.show({ jobs, fromSecs, toSecs });
  const env = { DATABASE_URL: ledger.url };
  const period = ['--from', timeOf(fromSecs), '--to', timeOf(toSecs)];
  const events = jobs * eventsAJob;
  const tell = (what: string, { secs, userSecs, mebibytes }: Measured, bytes = ''): void =>
    say(
      `| ${what} | ${events.toLocaleString('en-US')} | ${secs.toFixed(1)} s | ${userSecs.toFixed(1)} s | ${mebibytes} MiB | ${bytes} |`,
    );
  const rpc = ['--rpc', `eip155:84532=${node.url}`, '--pubkey', signer.verifierKeys[0]];
  if (isWanted('reconcile')) {
    const reconciled = await runMeasured(['reconcile', ...period, ...rpc], env);
    if (!/matched +/.test(reconciled.out)) throw new Error(`nothing was matched: ${reconciled.out}`);
    tell('reconcile', reconciled);
  }
  if (isWanted('refunds due')) {
    // the first one brings the read models up to date
    await runMeasured(['refunds', 'due'], env);
    tell('refunds due', await runMeasured(['refunds', 'due'], env));
  }
  for (const format of formats.filter((each) => isWanted(each))) {
    const out = path.join(dir, `books.${format}`);
    const range = format === 'jsonl' ? [] : period;
    const exported = await runMeasured(['export', '--format', format, ...range, '--out', out], env);
    tell(`export, ${format}`, exported, `${(statSync(out).size / 2 ** 20).toFixed(1)} MiB`);
    rmSync(out);
  }
}

async function main(): Promise<void> {
  mkdirSync(dir, { recursive: true });
  const ledger = await startLedger(path.join(dir, 'pg'), {});
  const node = await startSyntheticNode();
  try {
    const all = Math.ceil(Number(flags.events) / eventsAJob);
    const fromSecs = nowSecs();
    say('| | events | time | processor time of the command | its memory | file |\n|---|---|---|---|---|---|');
    let jobs = 0;
    for (const wanted of [Math.ceil(all / 10), all]) {
      await loadJobs(ledger, { first: jobs, count: wanted - jobs, inFlight: 256 });
      jobs = wanted;
      await sealRest(ledger);
      await measure(ledger, node, jobs, fromSecs);
    }
  } finally {
    await node.stop();
    await ledger.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

main().catch((error: unknown) => {
  fail(String(error));
  process.exitCode = 1;
});

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import type { ReportJson } from '../../src/finance/rules/reconcile/report.ts';
import type { ItemFields } from '../../src/finance/rules/reconcile/tally.ts';
import type { ItemClass } from '../../src/finance/rules/reconcile/reconcile.ts';
import { readHead } from '../../src/audit/store/log.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import type { TestChain } from './devnet.ts';
import { configText, receiptKey, startTestGateway, type TestGatewayOptions } from './gateway.ts';
import { exportTo, sealAll, testSeed, testSigner } from './log.ts';
import { payByOption, withEuroByPermit2 } from './permit2.ts';
import { temporaryFolder, tollbook } from './program.ts';
export { exceptionsIn } from './report-items.ts';
import { startTestRunner } from './runner.ts';
import { askNode } from './tokens.ts';
import { eventually } from './wait.ts';

const logTable = `[log]\norigin = "${testSigner.name}"\nkey = "env:LOG_KEY"`;
const logEnv = { LOG_KEY: testSeed.toString('hex') };

/** A gateway's configuration file for `tollbook reconcile`, and the variables that it names. */
function reconcileConfig(options: TestGatewayOptions): { file: string; env: Record<string, string> } {
  const file = path.join(temporaryFolder(), 'tollbook.toml');
  writeFileSync(
    file,
    (options.change ?? String)(configText({ ...options, runnerUrl: undefined, tables: logTable })),
  );
  return { file, env: { ...logEnv, DATABASE_URL: options.database.url, RECEIPT_KEY: receiptKey } };
}

/** Seals the ledger and writes its export and newest checkpoint. */
export async function exportSealed(database: TestDatabase): Promise<{ file: string; checkpoint: string }> {
  await sealAll(database);
  const dir = temporaryFolder();
  const [file, checkpoint] = [path.join(dir, 'export.jsonl'), path.join(dir, 'checkpoint')];
  await exportTo(file, database);
  const head = await readHead(database.pool, testSigner.name);
  writeFileSync(checkpoint, head?.note ?? '');
  return { file, checkpoint };
}

interface Block {
  readonly number: string;
  readonly timestamp: string;
}

/** A time before a final block of the chain, and after all that was recorded until now: the end of a period that is fully covered. */
export async function endOfPeriod(rpcUrl: string): Promise<string> {
  const latest = (await askNode(rpcUrl, 'eth_getBlockByNumber', ['latest', false])) as Block;
  // what the last block settled may have been recorded seconds later
  const end = Math.max(Number(latest.timestamp), Math.floor(Date.now() / 1_000)) + 1;
  await eventually(async () => {
    const final = (await askNode(rpcUrl, 'eth_getBlockByNumber', ['finalized', false])) as Block;
    if (Number(final.timestamp) < end || Date.now() < end * 1_000) throw new Error('not final yet');
  });
  return new Date(end * 1_000).toISOString();
}

export function itemsOf(report: ReportJson, name: ItemClass): readonly ItemFields[] {
  return report.classes[name]?.items ?? [];
}

const job = '/x402/jobs/1/0';

/** A gateway with a sealed ledger and six completed, final payments: three in one token by EIP-3009, three in another one by Permit2. */
export async function paid(chain: TestChain) {
  const database = await createDatabase();
  const runner = await startTestRunner(() => ({ status: 200, body: 'done' }));
  const from = new Date(Date.now() - 2_000).toISOString();
  const byPermit2 = await withEuroByPermit2(chain);
  const options = { database, chain, runnerUrl: runner.url, tables: logTable, env: logEnv, ...byPermit2 };
  const gateway = await startTestGateway(options);
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_, n) => payByOption(gateway, job, `body ${n}`, n % 2)),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
  await eventually(async () => {
    const { rows } = await database.pool.query(
      `select sum(count)::bigint as count from tollbook.lane_counter where type = 'completed'`,
    );
    expect(rows).toEqual([{ count: 6 }]);
  });
  const to = await endOfPeriod(chain.rpcUrl);
  await sealAll(database);
  const config = reconcileConfig(options);
  const json = path.join(temporaryFolder(), 'report.json');
  const run = (args: readonly string[], env: Record<string, string> = config.env) =>
    tollbook(['reconcile', ...args], env);
  const report = (): ReportJson => JSON.parse(readFileSync(json, 'utf8'));
  const period = ['--from', from, '--to', to];
  const usual = [...period, '--config', config.file, '--json', json];
  return { database, gateway, from, to, config, json, run, report, period, usual };
}

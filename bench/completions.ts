/**
 * `node bench/completions.ts [--completions 1000000]` records this many completions of one account, projects all of them into the read
 * models, and measures what the account's user sees: the pages of usage and of single requests, and the lists behind them.
 */
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { fail, say } from '../src/base/terminal/terminal.ts';
import { siweMessage } from '../src/accounts/rules/siwe.ts';
import type { Address } from '../src/base/values/primitives.ts';
import { projectNext } from '../src/audit/use-cases/projections/project.ts';
import { createStreamMemory } from '../src/audit/use-cases/projections/stream-memory.ts';
import {
  eventsACompletion,
  rareKeyId,
  rareModel,
  recordCompletions,
} from '../test/support/synthetic-completions.ts';
import { startLedger } from './ledger.ts';
import { secondsSince } from './log-load.ts';
import { startTollbook } from './tollbook.ts';

const { values: flags } = parseArgs({ options: { completions: { type: 'string', default: '1000000' } } });
const completions = Number(flags.completions);
const projectedAtOnce = 5_000;
const requests = 50;
const dir = path.join(import.meta.dirname, '.tollbook', `completions-${process.pid}`);
const secret = 'a-secret-of-the-benchmark-only-and-of-nothing-else';

const configText = (port: number): string => `
bind_address = "127.0.0.1:${port}"
features = ["chat"]
log_level = "silent"
[chat]
[[upstreams]]
name = "model"
base_url = "http://127.0.0.1:9/v1"
[[models]]
name = "model-1"
upstreams = ["model"]
input_price = "2.50"
output_price = "10.00"
context_length = 131_072
max_output_tokens = 16_384
[identity]
secret = "env:BENCH_SECRET"
[pages]
`;

/** Signs in with a new wallet; returns the cookies of its session. */
async function signIn(url: string): Promise<string> {
  const account = privateKeyToAccount(generatePrivateKey());
  const post = (where: string, body: object) =>
    fetch(url + where, {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: url },
      body: JSON.stringify(body),
    });
  const terms = (await (await post('/api/siwe/nonce', {})).json()) as Record<
    'domain' | 'uri' | 'nonce',
    string
  > & {
    readonly chain_id: number;
  };
  const message = siweMessage({
    domain: terms.domain,
    address: account.address.toLowerCase() as Address,
    uri: terms.uri,
    chainId: terms.chain_id,
    nonce: terms.nonce,
    issuedAt: new Date().toISOString(),
  });
  const signature = await account.signMessage({ message });
  const answer = await post('/api/siwe/verify', { address: account.address, message, signature });
  if (!answer.ok) throw new Error(`the sign-in was answered ${answer.status}`);
  return answer.headers
    .getSetCookie()
    .map((cookie) => cookie.split(';', 1)[0])
    .join('; ');
}

/** The middle, the slowest of a hundred and the first request of a page, in milliseconds. */
async function measure(url: string, where: string, cookie: string): Promise<void> {
  const times: number[] = [];
  let bytes = 0;
  for (let at = 0; at < requests; at++) {
    const startMs = performance.now();
    const answer = await fetch(url + where, { headers: { cookie } });
    const text = await answer.text();
    times.push(performance.now() - startMs);
    if (answer.status !== 200) throw new Error(`${where} was answered ${answer.status}`);
    bytes = text.length;
  }
  const [first = 0] = times;
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor((requests - 1) * share)] ?? 0).toFixed(1);
  const size = (bytes / 1_024).toFixed(0);
  say(`${where}: first ${first.toFixed(1)} ms, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${size} KiB`);
}

function day(ago: number): string {
  return new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
}

async function main(): Promise<void> {
  mkdirSync(dir, { recursive: true });
  const ledger = await startLedger(path.join(dir, 'pg'), { max_wal_size: '4GB' });
  try {
    const owner = new pg.Client(ledger.url);
    await owner.connect();
    let start = performance.now();
    await recordCompletions((statement, values) => owner.query(statement, [...values]), completions);
    say(`${completions} completions were recorded in ${secondsSince(start).toFixed(0)} s`);
    start = performance.now();
    const memory = createStreamMemory();
    while ((await projectNext(ledger.pool, projectedAtOnce, { memory })) > 0);
    const secs = secondsSince(start);
    const rate = (completions * eventsACompletion) / secs;
    say(`all were projected in ${secs.toFixed(0)} s, ${rate.toFixed(0)} events a second`);
    const { rows } = await owner.query<{ table_bytes: string; all_bytes: string; rows: string }>(
      `select pg_relation_size('tollbook.completion') as table_bytes, pg_total_relation_size('tollbook.completion') as all_bytes,
        (select count(*) from tollbook.completion where status = 'completed') as rows`,
    );
    say(`the list: ${JSON.stringify(rows[0])}`);
    await owner.query('vacuum analyze');
    await owner.end();
    const gateway = await startTollbook({
      databaseUrl: ledger.url,
      configText,
      readyPath: '/v1/ready',
      dir,
      env: { BENCH_SECRET: secret },
    });
    try {
      const cookie = await signIn(gateway.url);
      for (const where of [
        '/usage',
        `/usage?from=${day(399)}&to=${day(0)}`,
        '/usage/requests',
        `/usage/requests?from=${day(90)}&to=${day(80)}`,
        `/usage/requests?model=${rareModel}`,
        `/usage/requests?key_id=${rareKeyId}`,
        `/usage/requests?model=model-1&key_id=${rareKeyId}`,
        `/usage/requests?model=${rareModel}&key_id=${rareKeyId}`,
        `/usage/requests?cursor=${Math.floor(completions * eventsACompletion * 0.1)}`,
        '/v1/usage',
        '/v1/generations',
        '/v1/generations.csv',
      ])
        await measure(gateway.url, where, cookie);
    } finally {
      await gateway.stop();
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

/**
 * What a payment's appends cost the database, both ways, beside the same rows inserted without checks: CPU of the connection's own
 * process and WAL, by batch size. `node bench/append.ts [SECONDS]`, for each of the sizes and ways; the default is 3.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import {
  appendStatement,
  encodeCommand,
  type EncodedCommand,
  type LaneCommand,
} from '../src/store/append-batch.ts';
import { encodeClaim } from '../src/store/claim-key.ts';
import { orderedUuid } from '../src/domain/values/ordered-uuid.ts';
import { sessionConfig } from '../src/store/database.ts';
import { fullAnswer, uncontendedStatement } from '../src/store/uncontended.ts';
import { startLedger } from './ledger.ts';

type Way = 'decided' | 'written' | 'raw';
type Send = (batch: readonly EncodedCommand[], commands: readonly LaneCommand[]) => Promise<number[]>;

const seconds = Number(process.argv[2] ?? 3);
const network = 'eip155:84532';
const hex = (bytes: number): `0x${string}` => `0x${randomBytes(bytes).toString('hex')}`;
const [asset, payTo] = [hex(20), hex(20)];
const terms = {
  network,
  transfer_method: 'eip3009',
  asset,
  symbol: 'USDC',
  decimals: 6,
  amount: '3264000',
  pay_to: payTo,
  eip712_name: 'USD Coin',
  eip712_version: '2',
} as const;

/** A payment's three appends up to its delivery. */
function payment() {
  const [stream, payer, nonce] = [hex(32), hex(20), hex(32)];
  const named = { network, asset, payer, payment_nonce: nonce };
  const key = `${network}/eip3009/${asset}/${payer}/${nonce}`;
  const binding = hex(32);
  const quote: LaneCommand = {
    stream,
    expect: 0,
    events: [
      {
        type: 'quote_issued',
        data: {
          service_id: 1,
          job_index: 0,
          price_wei: '1000000000000000',
          options: [terms],
          requester: `0x${'0'.repeat(40)}`,
          inputs_hash: hex(32),
          issued_at: 1_800_000_000,
          expires_at: 1_800_000_300,
          salt: hex(32),
        },
      },
    ],
  };
  const start: LaneCommand = {
    stream,
    expect: 1,
    issuedAt: 1_795_000_000,
    events: [
      { type: 'payment_verified', data: { ...named, by: 'facilitator' } },
      {
        type: 'settlement_started',
        data: {
          request_id: randomUUID(),
          binding,
          body_sha256: hex(32),
          body_bytes: 100,
          payment: {
            x402_version: 2,
            ...terms,
            payer,
            nonce,
            valid_after: '0',
            valid_before: '1800000300',
            signature: hex(65),
            max_timeout_secs: 300,
          },
        },
      },
    ],
    claims: [
      { kind: 'payment', owner: payer, scope: `${network}/eip3009`, key: nonce, part: asset, binding },
      { kind: 'quote', owner: '', scope: '', key: stream, binding: key },
    ],
    call: {
      op: 'add',
      serviceId: 1,
      jobIndex: 0,
      bodyId: orderedUuid(),
      body: { contentType: 'application/json', bytes: randomBytes(100) },
      network,
      symbol: 'USDC',
      caller: undefined,
      payment: key,
      delayMs: 5_000,
    },
  };
  const transaction = hex(32);
  const settle = (callId: number): LaneCommand => ({
    stream,
    expect: 3,
    events: [
      {
        type: 'payment_settled',
        data: { ...named, amount: terms.amount, transaction, evidence: 'facilitator' },
      },
      { type: 'enqueued', data: { call_id: callId, payment_nonce: nonce } },
    ],
    claims: [{ kind: 'transfer', owner: '', scope: network, key: transaction, part: '1', binding: nonce }],
    call: { op: 'release', callId },
  });
  return { quote, start, settle };
}

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

let rawSeq = 0;
const q = (text: string): string => pg.escapeLiteral(text);

/** The limit: the same rows in one transaction, without lock, checks, order or answer, in a lane of their own. */
async function insertRaw(client: pg.Client, commands: readonly LaneCommand[]): Promise<number[]> {
  const events = commands.flatMap(({ stream, expect = 0, events: list }) =>
    list.map(
      ({ type, data }, i) =>
        `(2, ${++rawSeq}, ${expect + i + 1}, ${q(stream)}, ${q(type)}, now(), convert_to(${q(
          `{"at":"2026-11-22T12:00:00.000Z","data":${JSON.stringify(data)},"lane":2,"schema":1,"seq":${rawSeq},"stream":"${stream}","type":"${type}","version":${expect + i + 1}}`,
        )}, 'UTF8'))`,
    ),
  );
  const claims = commands.flatMap(({ stream, claims: list = [] }) =>
    list.map((claim) => {
      const { key, binding } = encodeClaim(claim);
      return `('\\x${key}', '\\x${binding}', ${q(stream)})`;
    }),
  );
  const statements = [`insert into tollbook.event values ${events.join()}`];
  if (claims.length > 0) statements.push(`insert into tollbook.claim values ${claims.join()}`);
  const added = commands.flatMap(({ stream, call, claims: list }) =>
    call?.op === 'add' ? [{ stream, call, list }] : [],
  );
  const released = commands.flatMap(({ call }) => (call?.op === 'release' ? [call.callId] : []));
  if (released.length > 0)
    statements.push(
      `update tollbook.call set status = 'ready', due_at = now() where call_id in (${released.join()})`,
    );
  if (added.length > 0) {
    const bodies = added.map(
      ({ call: { bodyId, body } }) =>
        `(${q(bodyId)}, ${q(body?.contentType ?? '')}, '\\x${body?.bytes.toString('hex')}', now())`,
    );
    statements.push(`insert into tollbook.call_body values ${bodies.join()}`);
    const calls = added.map(
      ({ stream, list, call: { bodyId, payment: paidBy } }) =>
        `(${q(stream)}, 1, 0, 'pending', ${q(bodyId)}, ${q(network)}, 'USDC', ${q(paidBy)}, ${q(JSON.stringify(list))}, now(), now())`,
    );
    statements.push(
      `insert into tollbook.call (stream, service_id, job_index, status, body_id, network, symbol, payment, claims, due_at, created_at)
       values ${calls.join()} returning call_id`,
    );
  }
  const result: pg.QueryResult | pg.QueryResult[] = await client.query(statements.join(';'));
  const rows: { call_id: number }[] = (Array.isArray(result) ? result.at(-1) : result)?.rows ?? [];
  return rows.map(({ call_id }) => call_id);
}

const steps = ['quote', 'start', 'settle'] as const;

/** The lower quartile: other programs share the processor, so the mean is further from the cost. */
const quartile = (list: number[]): number => list.toSorted((a, b) => a - b)[list.length >> 2] ?? 0;

async function measure(way: Way, size: number): Promise<string> {
  const client = new pg.Client(sessionConfig({ url: ledger.url }));
  await client.connect();
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
    const ids = await send(batch, commands);
    costs[step].push((cpuUs() - before) / size);
    return ids;
  };
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
  return `| ${size} | ${way} | ${us.join(' | ')} | ${kilobytes.toFixed(1)} |\n`;
}

process.stdout.write(
  '| batch | way | quote µs | start µs | settle µs | WAL kB a payment |\n| --: | --- | --: | --: | --: | --: |\n',
);
for (const size of [1, 8, 32]) {
  for (const way of ['decided', 'written', 'raw'] as const) process.stdout.write(await measure(way, size));
}
await ledger.stop();
rmSync(dir, { recursive: true });

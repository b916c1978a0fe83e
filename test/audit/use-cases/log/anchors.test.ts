import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { expect, test } from 'vitest';
import { publishNewestHead } from '../../../../src/audit/use-cases/log/anchors.ts';
import { readAnchorLags } from '../../../../src/audit/use-cases/log/anchor-lag.ts';
import { createAnchorConditions } from '../../../../src/audit/use-cases/log/conditions.ts';
import { createSince } from '../../../../src/base/runtime/since.ts';
import { logStatus } from '../../../../src/audit/workers/log.ts';
import type { Anchor } from '../../../../src/audit/peers/anchors/anchor.ts';
import { openCheckpoint, parseVerifierKey } from '../../../../src/base/values/log/checkpoint.ts';
import { createAnchor } from '../../../../src/audit/peers/anchors/create-anchor.ts';
import { readHead, readHeads } from '../../../../src/audit/store/log.ts';
import { backUp } from '../../../support/backup.ts';
import { booksConfig, booksEnv, startBooks } from '../../../support/books.ts';
import { bucketKeys, startBucket } from '../../../support/bucket.ts';
import { createDatabase } from '../../../support/database.ts';
import {
  appendRefusals,
  beginGeneration,
  folderTable,
  logPlace,
  newestIn,
  rootOfEvents,
  sealAll,
  testSigner,
  testVerifier,
} from '../../../support/log.ts';
import { logLines } from '../../../support/log-lines.ts';
import { startTollbook, temporaryFolder, tollbook } from '../../../support/program.ts';
import { eventually } from '../../../support/wait.ts';
import { listening } from '../../../support/listening.ts';

const origin = testSigner.name;

test('checkpoints reach a folder, each under its size, and each is a checkpoint of the ledger', async () => {
  const database = await createDatabase();
  const folder = temporaryFolder();
  await startBooks(database, { tables: folderTable(folder) });
  for (const size of [40, 80]) {
    await appendRefusals(database, 40);
    await eventually(() => expect(newestIn(folder).size).toBe(size));
  }
  const names = readdirSync(path.join(folder, logPlace)).filter((name) => name !== 'checkpoint');
  expect(names.at(-1)).toBe('0000000000000080');
  for (const name of names) {
    const head = openCheckpoint(readFileSync(path.join(folder, logPlace, name), 'utf8'), testVerifier);
    expect(head.size).toBe(Number(name));
    expect(head.root).toEqual(await rootOfEvents(database, head.size));
  }
});

test('a restored older backup is refused with a message that says what to do; under another name the log starts', async () => {
  const database = await createDatabase();
  const folder = temporaryFolder();
  const tables = folderTable(folder);
  const first = await startBooks(database, { tables });
  await appendRefusals(database, 30);
  await eventually(() => expect(newestIn(folder).size).toBe(30));
  await first.stop();
  const restore = await backUp(database);
  const second = await startBooks(database, { tables });
  await appendRefusals(database, 12);
  await eventually(() => expect(newestIn(folder).size).toBe(42));
  await second.stop();
  await restore();

  await expect(startBooks(database, { tables })).rejects.toThrow(
    /has 30 events, but the folder .* holds a checkpoint of 42 events: the last 12 events are missing, as in a restored backup\. Restore a newer backup/,
  );
  const file = path.join(temporaryFolder(), 'gateway.toml');
  writeFileSync(file, booksConfig({ tables }));
  const refused = await tollbook(['serve', '--config', file], { ...booksEnv, DATABASE_URL: database.url });
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/the last 12 events are missing/) });

  await startBooks(database, { tables, origin: `${origin}/2` });
  await eventually(async () =>
    expect(await readHead(database.pool, `${origin}/2`)).toMatchObject({ size: 30 }),
  );
  expect(newestIn(folder).size).toBe(42);
});

test('a database that was given up is refused, however many events it has', async () => {
  const database = await createDatabase();
  const folder = temporaryFolder();
  const tables = folderTable(folder);
  await appendRefusals(database, 30);
  await startBooks(database, { tables }).then((gateway) => gateway.stop());
  const bringBack = await backUp(database);
  await beginGeneration(database, 2, 30);
  const recovered = await startBooks(database, { tables });
  await eventually(() => expect(readdirSync(path.join(folder, `${logPlace}_2`))).toContain('checkpoint'));
  await recovered.stop();
  expect(newestIn(folder).size).toBe(30);
  await bringBack();
  await expect(startBooks(database, { tables })).rejects.toThrow(
    /holds a checkpoint of jobs\.example\/log\/2: the ledger was recovered into another database/,
  );
});

test('a database that diverged after a backup is refused, at any length', async () => {
  const database = await createDatabase();
  const folder = temporaryFolder();
  const tables = folderTable(folder);
  await appendRefusals(database, 10);
  const restore = await backUp(database);
  const gateway = await startBooks(database, { tables });
  await appendRefusals(database, 5);
  await eventually(() => expect(newestIn(folder).size).toBe(15));
  await gateway.stop();
  await restore();
  await appendRefusals(database, 50);
  await sealAll(database);
  await expect(startBooks(database, { tables })).rejects.toThrow(
    /first 15 events .* are not those .* another history/,
  );
});

test('an anchor that cannot be read, or holds invalid data, does not prevent the start', async () => {
  const database = await createDatabase();
  const folder = temporaryFolder();
  writeFileSync(path.join(folder, logPlace), 'a file where a folder should be');
  await appendRefusals(database, 1);
  const gateway = await startBooks(database, { tables: folderTable(folder) });
  await eventually(async () => expect((await fetch(`${gateway.url}/log/checkpoint`)).status).toBe(200));
});

test('a bucket gets signed requests, is read at the start, and gets the checkpoint after a failure', async () => {
  const database = await createDatabase();
  const bucket = await startBucket();
  bucket.fault = 503;
  const tables = `[[log.anchors]]
kind = "s3"
location = "${bucket.url}/the-bucket/books/"
secret = "env:S3_SECRET"
every_ms = 20`;
  const gateway = await startBooks(database, { tables });
  await appendRefusals(database, 7);
  bucket.fault = undefined;
  const newest = `/the-bucket/books/${logPlace}/checkpoint`;
  await eventually(() => expect(openCheckpoint(bucket.objects.get(newest) ?? '', testVerifier).size).toBe(7));
  expect(bucket.objects.has(`/the-bucket/books/${logPlace}/0000000000000007`)).toBe(true);
  await gateway.stop();
  await expect(startBooks(await createDatabase(), { tables })).rejects.toThrow(
    /the bucket the-bucket .* the last 7 events are missing/,
  );
  await expect(
    startBooks(await createDatabase(), { tables, env: { S3_SECRET: `AKIAOTHER:${bucketKeys.secretKey}` } }),
  ).resolves.toBeDefined();
});

interface StreamEvent {
  readonly checkpoint: string;
  readonly size: number;
}

/** Whom a webhook tells; `onMessage` runs before it answers. */
async function startHook(
  onMessage: () => void = () => {},
): Promise<{ table: string; received: StreamEvent[] }> {
  const received: StreamEvent[] = [];
  const server = http.createServer((request, response) => {
    const chunks: string[] = [];
    request.setEncoding('utf8').on('data', (text: string) => chunks.push(text));
    request.on('end', () => {
      received.push(JSON.parse(chunks.join('')) as StreamEvent);
      onMessage();
      response.end();
    });
  });
  const at = await listening(server);
  const url = `${at}/hook`;
  return { table: `[[log.anchors]]\nkind = "webhook"\nlocation = "${url}"\nevery_ms = 20`, received };
}

test('a webhook gets the newest checkpoint', async () => {
  const database = await createDatabase();
  const { table, received } = await startHook();
  await appendRefusals(database, 3);
  await startBooks(database, { tables: table });
  await eventually(() => expect(received.length).toBeGreaterThan(0));
  const last = received.at(-1)!;
  expect(openCheckpoint(last.checkpoint, testVerifier)).toMatchObject({ origin, size: last.size });
});

test('two sealers killed between commit and publication sign one head of each size, and publish it again unchanged', async () => {
  const database = await createDatabase();
  let gateways: ReturnType<typeof startTollbook>[] = [];
  let isDeadly = true;
  const { table, received } = await startHook(() => {
    if (isDeadly) for (const gateway of gateways) gateway.kill('SIGKILL');
  });
  const file = path.join(temporaryFolder(), 'gateway.toml');
  writeFileSync(file, booksConfig({ tables: table }));
  const start = () => startTollbook(['serve', '--config', file], { ...booksEnv, DATABASE_URL: database.url });
  for (let round = 1; round <= 2; round++) {
    await appendRefusals(database, 20);
    gateways = [start(), start()];
    await Promise.all(gateways.map((gateway) => gateway.exited));
  }
  isDeadly = false;
  gateways = [start(), start()];
  const receivedBefore = received.length;
  await eventually(() => expect(received.slice(receivedBefore).at(-1)?.size).toBe(40));
  for (const gateway of gateways) gateway.kill('SIGTERM');
  await Promise.all(gateways.map((gateway) => gateway.exited));
  const committed = new Map(
    (await readHeads(database.pool, origin, -1, 10_000)).map(({ size, note }) => [size, note]),
  );
  expect(received.length).toBeGreaterThanOrEqual(3);
  for (const { size, checkpoint } of received) expect(checkpoint).toBe(committed.get(size));
  for (const [size, note] of committed)
    expect(openCheckpoint(note, testVerifier).root).toEqual(await rootOfEvents(database, size));
});

test('of several processes one publishes to an anchor, once, and never a smaller size', async () => {
  const database = await createDatabase();
  const folder = temporaryFolder();
  const anchor = createAnchor({ kind: 'folder', name: 'one', everyMs: 60_000, folder });
  await appendRefusals(database, 3);
  await sealAll(database);
  const received = await Promise.all(
    Array.from({ length: 8 }, () => publishNewestHead(database.pool, testSigner, anchor)),
  );
  expect(received.filter(({ kind }) => kind === 'done')).toHaveLength(1);
  await appendRefusals(database, 3);
  await sealAll(database);
  expect(await publishNewestHead(database.pool, testSigner, anchor)).toEqual({ kind: 'nothing' });
  await database.moveClock(61);
  expect(await publishNewestHead(database.pool, testSigner, anchor)).toEqual({ kind: 'done', size: 6 });
});

test('a gateway that stops seals the last events and publishes the checkpoint before the interval ends', async () => {
  const database = await createDatabase();
  const folder = temporaryFolder();
  const tables = folderTable(folder).replace('= 20', '= 86_400_000');
  const gateway = await startBooks(database, { tables });
  await eventually(() => expect(newestIn(folder).size).toBe(0));
  await appendRefusals(database, 7);
  await eventually(async () => expect((await readHead(database.pool, origin))?.size).toBe(7));
  expect(newestIn(folder).size).toBe(0);
  await appendRefusals(database, 4);
  await gateway.stop();
  expect(newestIn(folder).size).toBe(11);
  expect(newestIn(folder).root).toEqual(await rootOfEvents(database, 11));
});

test('neither an unreachable anchor nor a sealer that cannot seal delays a shutdown', async () => {
  const database = await createDatabase();
  const folder = temporaryFolder();
  writeFileSync(path.join(folder, logPlace), 'a file where a folder should be');
  const { logger, lines } = logLines();
  const gateway = await startBooks(database, { tables: folderTable(folder), logger });
  await appendRefusals(database, 3);
  await database.asOwner(async (owner) => {
    await owner.query('alter table tollbook.event disable trigger all');
    await owner.query('delete from tollbook.event where seq = 3');
  });
  await gateway.stop();
  expect(lines.map(({ msg }) => msg)).not.toContain('stopping did not go smoothly');
});

test('the command line creates a key', async () => {
  const { code, stdout, stderr } = await tollbook(['log', 'key', 'jobs.example/log']);
  expect(code).toBe(0);
  expect(Buffer.from(stdout.trim(), 'base64')).toHaveLength(32);
  expect(parseVerifierKey(/public key: (\S+)/.exec(stderr)?.[1] ?? '').name).toBe('jobs.example/log');
  expect(stderr).not.toContain(stdout.trim());
  expect(await tollbook(['log', 'key', 'two words'])).toMatchObject({ code: 2 });
});

test('an anchor that lacks checkpoints for long, and one whose key has little ether, are alerts until that ends', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 3);
  await sealAll(database);
  let balanceWei = 9n;
  const anchor: Anchor = {
    name: 'chain',
    place: 'a contract',
    everyMs: 10_000,
    isFree: false,
    publish: async () => ({ kind: 'done' }),
    newest: undefined,
    funds: async () => ({ kind: 'answer', value: { balanceWei, costWei: 1n } }),
    close: async () => {},
  };
  const look = () => createAnchorConditions(database.pool, testSigner, [anchor]).look;
  const status = async () =>
    logStatus([anchor], await readAnchorLags(database.pool, testSigner, [anchor]), createSince());
  const conditions = look();
  await conditions();
  expect(await conditions()).toMatchObject([{ kind: 'low_gas', subject: 'anchor chain' }]);
  expect(await status()).toMatchObject({ status: 'ok', anchors: { chain: { ok: true, size: 0 } } });
  await database.moveClock(200);
  expect(await conditions()).toMatchObject([{ kind: 'low_gas' }]);
  expect(await status()).toMatchObject({ status: 'ok' });
  await database.moveClock(400);
  // `/status` and the metrics go by the same rule as the alert, also for an anchor that never took a checkpoint
  expect(await status()).toMatchObject({ status: 'degraded', anchors: { chain: { ok: false } } });
  expect(await conditions()).toMatchObject([
    { kind: 'anchors_behind', subject: 'chain', details: { lag_secs: expect.closeTo(400, -2) } },
    { kind: 'low_gas' },
  ]);
  await eventually(async () =>
    expect(await publishNewestHead(database.pool, testSigner, anchor)).toMatchObject({ kind: 'done' }),
  );
  balanceWei = 10n;
  const later = look();
  await later();
  expect(await later()).toEqual([]);
  expect(await status()).toMatchObject({ status: 'ok', anchors: { chain: { ok: true, behind_events: 0 } } });
});

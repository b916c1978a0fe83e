import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { verifyDatabase } from '../../../../src/audit/use-cases/verify/verify-database.ts';
import { noteSigner, signCheckpoint } from '../../../../src/base/values/log/checkpoint.ts';
import { busyLedger, paidJob } from '../../../support/synthetic-ledger.ts';
import { createDatabase } from '../../../support/database.ts';
import { expectIndependent } from '../../../support/independent.ts';
import {
  exportTo,
  insertClaims,
  rootOfEvents,
  appendAll,
  testSigner,
  testVerifier,
} from '../../../support/log.ts';
import { temporaryFolder, tollbook } from '../../../support/program.ts';
import { tamperings } from '../../../support/tampering.ts';
import {
  checkpointFiles,
  keepCheckpoint,
  sealedLedger,
  tamper,
  verifyBoth,
  writeExport,
} from '../../../support/verify.ts';

/** A ledger of 114 events that was sealed at 60 and at its end. */
const busySealed = () => sealedLedger(busyLedger().take(114).toArray(), 60);

test('export, independent verifier and database agree that an honest ledger is sound', async () => {
  const { database, dir } = await busySealed();
  await exportTo(path.join(dir, 'export.jsonl'), database);
  const { isSound, text, independent } = await verifyBoth(dir);
  expect(text).toContain('114 events');
  expect(isSound).toBe(true);
  expectIndependent(independent, true, (await rootOfEvents(database, 114)).toString('base64'));
  const inside = await verifyDatabase(database.pool, [], testVerifier);
  expect([inside.fault, inside.isSound, inside.hasCounters]).toEqual([undefined, true, true]);
});

test.each(tamperings)('both verifiers report offline when $what', async (tampering) => {
  const { database, dir } = await busySealed();
  await tamper(database, tampering);
  await exportTo(path.join(dir, 'export.jsonl'), database);
  const { isSound, text, independent } = await verifyBoth(dir);
  expect(text).toMatch(tampering.words);
  expect(isSound).toBe(false);
  expectIndependent(independent, false, tampering.independently ?? tampering.words);
  expect((await verifyDatabase(database.pool, [], testVerifier)).isSound).toBe(false);
});

test('a payment that is said to be signed by a contract is reported as one whose signature is not checked', async () => {
  const { database, dir } = await sealedLedger(paidJob(1, { isSignedByContract: true }), 7);
  await exportTo(path.join(dir, 'export.jsonl'), database);
  const { isSound, text, independent } = await verifyBoth(dir);
  expect(isSound).toBe(true);
  expect(text).toContain('-      1 payment is said to be signed by a contract: only its chain can tell');
  expectIndependent(independent, true);
});

test('a stretch that is missing from the middle is not called the last events', async () => {
  const { database, dir } = await busySealed();
  await database.asOwner(async (owner) => {
    await owner.query('set session_replication_role = replica');
    await owner.query('delete from tollbook.event where seq between 40 and 45');
  });
  await exportTo(path.join(dir, 'export.jsonl'), database);
  const { text } = await verifyBoth(dir);
  expect(text).toMatch(/first at event 40: event 46 \(.*\) was found, but 40 was expected/);
  expect(text).toMatch(/new\.ckpt: it covers 114 events, but the ledger has 108: 6 are missing/);
});

test('a silent change is named to the event where the sealed hashes are at hand', async () => {
  const { database } = await busySealed();
  await tamper(
    database,
    tamperings.find(({ what }) => what.startsWith('a result'))!,
  );
  const { fault } = await verifyDatabase(database.pool, [], testVerifier);
  expect(fault).toMatchObject({
    seq: 50,
    words: expect.stringMatching(/its bytes differ from the sealed ones/),
  });
});

test('a change of any column of an event is found in the database: each is a part of the leaf', async () => {
  const { database } = await busySealed();
  const changes = {
    "type = 'delivered'": /the data of delivered do not match its schema/,
    "stream = 'other'": /an event of it is missing or moved/,
    "stream = convert_to(tollbook.stream_name(stream), 'UTF8')":
      /its time or its stream is not as an append writes it/,
    'version = 99': /an event of it is missing or moved/,
    'data = replace(data, \'"result_bytes":\', \'"result_bytes":1\')':
      /its bytes differ from the sealed ones/,
    "data = replace(data, ',', ', ')": /its bytes are not canonical JSON/,
    "at = at + interval '1 millisecond'": /its bytes differ from the sealed ones/,
    "at = at + interval '1 microsecond'": /its time or its stream is not as an append writes it/,
    "at = (at::text || ' BC')::timestamptz": /its time or its stream is not as an append writes it/,
    "at = 'infinity'": /its time is malformed/,
    'lane_id = 2': /event 50 \(completed\) was found, but 49 was expected/,
    'seq = 1049': /event 50 \(completed\) was found, but 49 was expected/,
  };
  const found: Record<string, string | undefined> = {};
  await database.asOwner(async (owner) => {
    await owner.query('set session_replication_role = replica');
    await owner.query('create temporary table kept as select * from tollbook.event where seq = 49');
    for (const change of Object.keys(changes)) {
      await owner.query(`update tollbook.event set ${change} where seq = 49`);
      found[change] = (await verifyDatabase(database.pool, [], testVerifier)).fault?.words;
      await owner.query(
        `delete from tollbook.event where seq in (49, 1049); insert into tollbook.event select * from kept`,
      );
    }
  });
  const expected = Object.entries(changes).map(([change, words]) => [change, expect.stringMatching(words)]);
  expect(found).toEqual(Object.fromEntries(expected));
  expect((await verifyDatabase(database.pool, [], testVerifier)).fault).toBeUndefined();
});

test('a history forked and sealed anew by the right key: the older checkpoint finds it, and both prove it', async () => {
  const { dir } = await busySealed();
  const forked = await createDatabase();
  const without = busyLedger()
    .take(114)
    .toArray()
    .filter((_, i) => i !== 56);
  await appendAll(forked, without);
  await keepCheckpoint(forked, path.join(dir, 'new.ckpt'));
  await exportTo(path.join(dir, 'export.jsonl'), forked);
  const { isSound, text, independent } = await verifyBoth(dir);
  expect(isSound).toBe(false);
  expect(text).toMatch(/ok .*new\.ckpt: the first 113 events/);
  expect(text).toMatch(/WRONG .*old\.ckpt: of the events 1 to 60/);
  expect(text).toMatch(/signed two histories/);
  expectIndependent(independent, false, /old\.ckpt: the first 60/);
});

const damaged: readonly [string, (text: string) => string, RegExp][] = [
  ['cut in the middle of a line', (text) => text.slice(0, -30), /first at event 115: .*middle of a line/],
  [
    'cut after a line',
    (text) => text.split('\n').slice(0, 90).join('\n') + '\n',
    /covers 114 events, but the ledger has 90/,
  ],
  [
    'with a line twice',
    (text) => text.replace(/^(.*\n)/, '$1$1'),
    /first at event 2: event 1 .*is repeated or was moved/,
  ],
  [
    'with lines in another order',
    (text) => text.replace(/^(.*\n)(.*\n)/, '$2$1'),
    /first at event 1: event 2 .*was found, but 1 was expected/,
  ],
  ['with a line that is not a JSON', (text) => text.replace(/^.*\n/, 'x\n'), /first at event 1: .*not JSON/],
  ['with blanks added', (text) => text.replace('"lane":1', '"lane": 1'), /first at event 1: .*canonical/],
  [
    'with an event of an unknown type',
    (text) => text.replace('"type":"completed"', '"type":"gifted"'),
    /first at event 49: unknown event type gifted/,
  ],
];

test.each(damaged)('both verifiers reject an export %s', async (_, damage, words) => {
  const dir = temporaryFolder();
  const file = path.join(dir, 'export.jsonl');
  writeExport(dir, busyLedger().take(114).toArray());
  writeFileSync(file, damage(readFileSync(file, 'utf8')));
  const { isSound, text, independent } = await verifyBoth(dir, ['new.ckpt']);
  expect(text).toMatch(words);
  expect(isSound).toBe(false);
  expectIndependent(independent, false);
});

test.each([
  ['of another log', noteSigner('other.example', [Buffer.alloc(32, 42)]), 114, /of the log other\.example/],
  ['signed by another key', noteSigner(testSigner.name, [Buffer.alloc(32, 1)]), 114, /signed by another key/],
  ['of a larger size than the export', testSigner, 115, /covers 115 events, but the ledger has 114/],
])('a checkpoint %s is refused', async (_, signer, size, words) => {
  const dir = temporaryFolder();
  const root = writeExport(dir, busyLedger().take(114).toArray());
  writeFileSync(path.join(dir, 'new.ckpt'), signCheckpoint({ origin: signer.name, size, root }, signer));
  const { isSound, text, independent } = await verifyBoth(dir, ['new.ckpt']);
  expect(text).toMatch(words);
  expect(isSound).toBe(false);
  expectIndependent(independent, false);
});

test('from the shell: an export in pieces, verified offline, exit 0, 1 or 2', async () => {
  const { database, dir } = await busySealed();
  const file = path.join(dir, 'export.jsonl');
  const env = { DATABASE_URL: database.url };
  const whole = await tollbook(['export', '--format', 'jsonl'], env);
  expect(whole).toMatchObject({ code: 0, stderr: '' });
  await tollbook(['export', '--out', file], env);
  expect(readFileSync(file, 'utf8')).toBe(whole.stdout);
  await appendAll(database, busyLedger().take(171).toArray().slice(114));
  expect((await tollbook(['export', '--from-seq', '115', '--out', file], env)).code).toBe(0);
  const given = checkpointFiles.flatMap((name) => ['--checkpoint', path.join(dir, name)]);
  const key = ['--pubkey', testSigner.verifierKeys[0]];
  const sound = await tollbook(['verify', file, ...given, ...key]);
  expect(sound.stdout).toContain('171 events');
  expect(sound.stdout).toContain(
    '57 events are not yet covered by a checkpoint that holds: events 115 to 171',
  );
  expect(sound).toMatchObject({ code: 0, stderr: '' });
  await insertClaims(database);
  expect(await tollbook(['verify', ...key], env)).toMatchObject({ code: 0, stderr: '' });
  expect(await tollbook(['verify', file, ...given])).toMatchObject({ code: 2 });
  expect(await tollbook(['verify', file, ...given, '--pubkey', 'a+b+c'])).toMatchObject({ code: 2 });
  expect(await tollbook(['export', '--format', 'csv'], env)).toMatchObject({ code: 2 });
  expect(await tollbook(['export', '--from-seq', "1'; drop"], env)).toMatchObject({ code: 2 });
  await tamper(database, tamperings[0]!);
  expect(await tollbook(['verify', ...key], env)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/WRONG {2}first at event 25/),
  });
});

import { expect, test } from 'vitest';
import { verifyDatabase } from '../../../../src/audit/use-cases/verify/verify-database.ts';
import { createDatabase } from '../../../support/database.ts';
import { appendRefusals, sealAll, testVerifier } from '../../../support/log.ts';
import { busyLedger } from '../../../support/synthetic-ledger.ts';
import { sealedLedger, tamper } from '../../../support/verify.ts';

test.each([
  [
    'a tile that was added',
    'insert into tollbook.log_tile select lane_id, level, tile + 9, hashes from tollbook.log_tile limit 1',
    /log_tile: level 0 has 228 hashes in 2 tiles, by the events 114/,
  ],
  [
    'a tile that was added on its own level',
    'insert into tollbook.log_tile select lane_id, level + 1, tile, hashes from tollbook.log_tile limit 1',
    /log_tile: level 1 has 114 hashes in 1 tiles, by the events 0/,
  ],
  [
    'a hash that was added to a tile',
    String.raw`update tollbook.log_tile set hashes = hashes || sha256('\x00')`,
    /log_tile: level 0 has 115 hashes in 1 tiles, by the events 114/,
  ],
  [
    'a tree of another lane',
    'update tollbook.log_tree set lane_id = 2',
    /log_tree: the row of the tree is missing/,
  ],
])('%s is named, though every sealed hash is right', async (what, statement, words) => {
  const { database } = await sealedLedger(busyLedger().take(114).toArray(), 60);
  await tamper(database, { what, words, change: (owner) => owner.query(statement) });
  expect((await verifyDatabase(database.pool, [], testVerifier)).fault?.words).toMatch(words);
});

test('of a log with tiles of tiles all are compared, and one that has too much is named', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 300);
  await sealAll(database);
  await appendRefusals(database, 400);
  await sealAll(database);
  const verify = () => verifyDatabase(database.pool, [], testVerifier);
  expect((await verify()).fault).toBeUndefined();
  await tamper(database, {
    what: 'a hash that was added to a tile of tiles',
    words: /./,
    change: (owner) =>
      owner.query(String.raw`update tollbook.log_tile set hashes = hashes || sha256('\x00') where level = 1`),
  });
  expect((await verify()).fault?.words).toMatch(/log_tile: level 1 has 3 hashes in 1 tiles, by the events 2/);
});

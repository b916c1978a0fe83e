import path from 'node:path';
import { expect, test } from 'vitest';
import { verifyDatabase } from '../../../../src/audit/use-cases/verify/verify-database.ts';
import { expectIndependent } from '../../../support/independent.ts';
import { exportTo, testVerifier } from '../../../support/log.ts';
import { peopleLedger, peopleTamperings } from '../../../support/tampering-people.ts';
import { sealedLedger, tamper, verifyBoth } from '../../../support/verify.ts';

test('an honest ledger of credit, chats, spends and people is sound to both verifiers', async () => {
  const { database, dir } = await sealedLedger(peopleLedger, 35);
  await exportTo(path.join(dir, 'export.jsonl'), database);
  const { text, independent } = await verifyBoth(dir);
  expect(text).toMatch(/84 events[^]*\nsound$/);
  expectIndependent(independent, true);
});

test.each(peopleTamperings)('both verifiers report offline when $what', async (tampering) => {
  const { database, dir } = await sealedLedger(peopleLedger, 35);
  await tamper(database, tampering);
  await exportTo(path.join(dir, 'export.jsonl'), database);
  const { isSound, text, independent } = await verifyBoth(dir);
  expect(text).toMatch(tampering.words);
  expect(isSound).toBe(false);
  expectIndependent(independent, false, tampering.independently ?? tampering.words);
  expect((await verifyDatabase(database.pool, [], testVerifier)).isSound).toBe(false);
});

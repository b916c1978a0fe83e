import { expect, test } from 'vitest';
import { openDatabaseSource, openFileSource } from '../../../../src/finance/use-cases/books/source.ts';
import { createDatabase } from '../../../support/database.ts';

test('a ledger has all events before the moment of its read or export, and is not said to have any later ones', async () => {
  const { nowMs, isCompleteTo } = await openDatabaseSource((await createDatabase()).pool);
  expect([isCompleteTo(nowMs), isCompleteTo(nowMs + 1)]).toEqual([true, false]);
  const file = openFileSource('ledger.jsonl', 2_000, 1_000);
  expect([file.isCompleteTo(1_000), file.isCompleteTo(1_001)]).toEqual([true, false]);
});

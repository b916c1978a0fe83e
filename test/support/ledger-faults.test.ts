import { expect, onTestFinished, test } from 'vitest';
import { writerRole } from '../../src/ledger/store/database.ts';
import { openLane } from '../../src/ledger/store/lane.ts';
import { createDatabase } from './database.ts';
import { newStream, refused } from './events.ts';
import { ledgerFaults } from './ledger-faults.ts';

test('a sound ledger has no fault whatever is appended while its tables are read', async () => {
  const database = await createDatabase();
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(() => lane.close(1_000));
  let isOver = false;
  const appending = (async () => {
    while (!isOver) await lane.append({ stream: newStream(), events: [refused()] });
  })();
  const found: string[] = [];
  const seen = new Set<number>();
  // until it was read at sixteen sizes: it grows from check to check
  while (seen.size < 16) {
    const { events, faults } = await ledgerFaults(database.db);
    found.push(...faults);
    seen.add(events.length);
  }
  isOver = true;
  await appending;
  expect(found).toEqual([]);
});

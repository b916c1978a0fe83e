import type pg from 'pg';
import { expect } from 'vitest';
import { countersFrom } from '../../src/domain/stats.ts';
import type { LedgerDatabase } from '../../src/store/database.ts';
import { readCounters } from '../../src/store/counters.ts';
import { readEvents } from '../../src/store/streams.ts';
import type { RecordedEvent } from '../../src/domain/event.ts';

export async function allEvents(db: LedgerDatabase): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for (;;) {
    const page = await readEvents(db, events.at(-1)?.seq ?? 0, 5_000);
    events.push(...page);
    if (page.length < 5_000) return events;
  }
}

/** What must hold of every ledger, whatever was done to it: read from the tables alone. */
export async function expectSoundLedger(db: LedgerDatabase, owner: pg.Client): Promise<RecordedEvent[]> {
  const events = await allEvents(db);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));

  const versions = new Map<string, number>();
  const countOf = new Map<string, number>();
  let last = '';
  for (const { stream, version, type, at } of events) {
    expect(version).toBe((versions.get(stream) ?? 0) + 1);
    versions.set(stream, version);
    countOf.set(type, (countOf.get(type) ?? 0) + 1);
    expect(at >= last).toBe(true);
    last = at;
  }

  const { asOfSeq, counters } = await readCounters(db);
  expect(asOfSeq).toBe(events.length);
  expect(counters).toEqual(countersFrom(countOf));
  const rows = await owner.query<{ type: string; count: string }>(
    'select type, count from tollbook.lane_counter',
  );
  expect(new Map(rows.rows.map(({ type, count }) => [type, Number(count)]))).toEqual(countOf);

  const open = await owner.query<{ open_calls: string; rows: string }>(
    `select open_calls, (select count(*) from tollbook.call where status <> 'dead') as rows from tollbook.lane`,
  );
  expect(open.rows[0]?.open_calls).toBe(open.rows[0]?.rows);
  return events;
}

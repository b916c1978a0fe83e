import type pg from 'pg';
import { expect } from 'vitest';
import type { RecordedEvent } from '../../src/ledger/rules/event.ts';
import type { LedgerDatabase } from '../../src/ledger/store/database.ts';
import type { TestDatabase } from './database.ts';
import { checkedFaults, ledgerFaults } from './ledger-faults.ts';
import { rowFaults } from './row-faults.ts';

export { allEvents } from './ledger-faults.ts';

/** What must hold of every ledger, whatever was done to it: read only from the tables. */
export async function expectSoundLedger(db: LedgerDatabase, owner: pg.Client): Promise<RecordedEvent[]> {
  const { events, faults } = await ledgerFaults(db);
  expect(faults).toEqual([]);
  // the lane's own tests append meaningless events; a gateway's events must be legal
  if (events.some(({ type }) => ofGateways.has(type))) {
    expect(await checkedFaults(owner)).toEqual([]);
    expect(await rowFaults(owner)).toEqual([]);
  }
  return events;
}

/** The same, of a database of a test. */
export function expectSound(database: TestDatabase): Promise<RecordedEvent[]> {
  return database.asOwner((owner) => expectSoundLedger(database.db, owner));
}

const ofGateways = new Set(['settlement_started', 'spend_accepted', 'session_started']);

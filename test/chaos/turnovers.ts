import { setTimeout as sleep } from 'node:timers/promises';
import type { RecordedEvent } from '../../src/ledger/rules/event.ts';
import { allEvents } from '../support/ledger-faults.ts';
import type { Participants } from './participants.ts';
import type { RunParts } from './run-parts.ts';
import type { Turnover } from './schedule.ts';
import { withLedger, withOwner } from './sql.ts';

/**
 * Events that a turnover lost, and the last one that it kept. If none is lost, the answer to a batch without events may be: gateways
 * stop for that too.
 */
export interface Loss {
  readonly keptSeq: number;
  readonly events: readonly RecordedEvent[];
  /** When gateways were started again, by this machine's clock. */
  readonly resumedAt?: number;
}

type TurnoverParts = Pick<RunParts, 'environment' | 'url' | 'faults' | 'freezer'> & {
  readonly participants: Pick<Participants, 'blockDatabase' | 'openDatabase'>;
};

/** Another database server takes over while gateways are running. Returns what it lacks; undefined if it was synchronous. */
export async function turnOver(parts: TurnoverParts, turnover: Turnover): Promise<Loss | undefined> {
  const { faults, freezer } = parts;
  const { postgres } = parts.environment;
  const { kind, atMs, forMs } = turnover;
  await sleep(atMs);
  const backup = await postgres.backUp();
  switch (kind) {
    case 'synchronous_failover': {
      const standby = await postgres.follow(backup, 'synchronous');
      await sleep(forMs);
      faults.count(kind);
      freezer.thaw();
      await postgres.replaceBy(standby);
      return undefined;
    }
    case 'asynchronous_failover': {
      const standby = await postgres.follow(backup, 'asynchronous');
      await standby.disconnect();
      await sleep(forMs);
      return replaceLossily(parts, kind, () => postgres.replaceBy(standby));
    }
    case 'restore':
      await sleep(forMs);
      return replaceLossily(parts, kind, () => postgres.replaceBy(backup));
  }
}

/** While gateways have no connection, so that the lost events are exactly known. */
async function replaceLossily(
  { url, participants, faults, freezer }: TurnoverParts,
  kind: string,
  replace: () => Promise<void>,
): Promise<Loss> {
  freezer.thaw();
  participants.blockDatabase();
  // a statement that had arrived already is committed or rolled back soon
  await sleep(200);
  const before = await readAll(url());
  await replace();
  if (kind === 'restore') await restoreSequence(url());
  const after = await readAll(url());
  const { length: keptSeq } = after;
  const events = before.slice(keptSeq);
  faults.count(kind, `events 1 to ${keptSeq} are kept, ${events.length} are lost`);
  participants.openDatabase();
  return { keptSeq, events };
}

/** A restored dump continues with the next call id; a copy of files skips up to 32, which hides that ids come twice. */
async function restoreSequence(url: string): Promise<void> {
  await withOwner(url, (owner) =>
    owner.query(
      `select setval(pg_get_serial_sequence('tollbook.call', 'call_id'),
         1 + greatest(
           (select coalesce(max(call_id), 0) from tollbook.call),
           (select coalesce(max((data::json ->> 'call_id')::bigint), 0) from tollbook.event)
         ), false)`,
    ),
  );
}

/** The events of a ledger, in their order. */
export function readAll(url: string): Promise<RecordedEvent[]> {
  return withLedger(url, ({ db }) => allEvents(db));
}

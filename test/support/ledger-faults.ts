import { sql } from 'kysely';
import type pg from 'pg';
import type { RecordedEvent } from '../../src/ledger/rules/event.ts';
import { firstProblem } from './first-problem.ts';
import { countByType, countersFrom } from '../../src/ledger/rules/counters.ts';
import { readCounters } from '../../src/ledger/store/counters.ts';
import type { LedgerDatabase } from '../../src/ledger/store/database.ts';
import { readEvents } from '../../src/ledger/store/streams.ts';

export async function allEvents(db: LedgerDatabase): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for (;;) {
    const page = await readEvents(db, events.at(-1)?.seq ?? 0, 5_000);
    events.push(...page);
    if (page.length < 5_000) return events;
  }
}

/**
 * Descriptions of what is wrong with a ledger, only from its tables: gaps, wrong versions, wrong counters. All is read in one snapshot, so
 * that gateways may append meanwhile.
 */
export function ledgerFaults(db: LedgerDatabase): Promise<{ events: RecordedEvent[]; faults: string[] }> {
  return db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(faultsIn);
}

async function faultsIn(snapshot: LedgerDatabase): Promise<{ events: RecordedEvent[]; faults: string[] }> {
  const events = await allEvents(snapshot);
  const faults = [...orderFaults(events)];
  const countOf = countByType(events);

  const { asOfSeq, counters } = await readCounters(snapshot);
  if (asOfSeq !== events.length) faults.push(`the lane has seq ${asOfSeq}, but ${events.length} events`);
  faults.push(...differences('the public counter', counters, countersFrom(countOf)));
  const rows = await sql<{ type: string; count: string }>`
    select type, sum(count)::text as count from tollbook.lane_counter group by type`.execute(snapshot);
  const counted = Object.fromEntries(rows.rows.map(({ type, count }) => [type, Number(count)]));
  faults.push(...differences('the counter of events', counted, Object.fromEntries(countOf)));

  const open = await sql<{ lane: string; actual: string }>`
    select open_calls || ' open, ' || unsettled_calls || ' unsettled and ' || triggered_calls || ' triggered calls' as lane, (
      select count(*) filter (where status not in ('dead', 'watched')) || ' open, '
        || count(*) filter (where status in ('pending', 'unpaid')) || ' unsettled and '
        || count(*) filter (where status <> 'dead' and trigger_kind is not null) || ' triggered calls' from tollbook.call) as actual
    from tollbook.lane`.execute(snapshot);
  const { lane, actual } = open.rows[0] ?? {};
  if (lane !== actual) faults.push(`the lane counts ${lane}, and there are ${actual}`);
  return { events, faults };
}

/** The result of the ledger check for a gateway's ledger: bytes, claims, legal transitions. One query, and so one snapshot. */
export async function checkedFaults(owner: pg.Client): Promise<string[]> {
  const { rows } = await owner.query<{ leaf: Buffer }>(
    'select tollbook.leaf(event) as leaf from tollbook.event order by seq',
  );
  const fault = firstProblem(rows.map(({ leaf }) => leaf));
  return fault ? [`event ${fault.seq}: ${fault.words}`] : [];
}

function* orderFaults(events: readonly RecordedEvent[]): Generator<string> {
  const versions = new Map<string, number>();
  let last = '';
  for (const [index, { seq, stream, version, at }] of events.entries()) {
    if (seq !== index + 1) yield `seq ${seq} was found, but ${index + 1} was expected`;
    const before = versions.get(stream) ?? 0;
    if (version !== before + 1) yield `version ${version} of ${stream} follows ${before}`;
    versions.set(stream, version);
    if (at < last) yield `seq ${seq} is older than the event before it`;
    last = at;
  }
}

function* differences(
  what: string,
  found: Readonly<Record<string, number>>,
  expected: Readonly<Record<string, number>>,
): Generator<string> {
  for (const name of new Set([...Object.keys(found), ...Object.keys(expected)])) {
    if (found[name] !== expected[name])
      yield `${what} ${name} is ${found[name]}, the events say ${expected[name]}`;
  }
}

import pg from 'pg';
import type { RecordedEvent } from '../../../src/domain/events/event.ts';
import type { Address } from '../../../src/domain/values/primitives.ts';
import { countersFrom } from '../../../src/domain/events/counters.ts';
import { openDatabase, openPool } from '../../../src/store/database.ts';
import { ledgerFaults } from '../../support/ledger-faults.ts';
import type { Book } from '../book.ts';
import type { Cast } from '../cast.ts';
import type { World } from '../world.ts';
import { answerViolations, countExcused } from './answers.ts';
import { moneyViolations } from './money.ts';
import { recordedPayments } from './payments.ts';
import { readTransfers } from './transfers.ts';
import { transitionViolations } from './transitions.ts';
import type { Violation } from './violation.ts';
import { workViolations } from './work.ts';

export interface CheckParts {
  readonly world: World;
  readonly database: string;
  readonly cast: Cast;
  readonly book: Book;
  readonly payTo: Address;
  readonly fromBlock: bigint;
  /** What did not come to rest. */
  readonly left: readonly string[];
}

export interface Checked {
  readonly violations: readonly Violation[];
  readonly landed: number;
  /** Refusals of payments that another request of the same client started later. */
  readonly excused: number;
  /** The ledger as text, for whoever looks at a violation. */
  readonly ledger: string;
}

/** Compares the chain, the ledger, what clients were told and what runners did. */
export async function checkRun(parts: CheckParts): Promise<Checked> {
  const { world, cast, book } = parts;
  const told = await askForStats(cast);
  // nobody writes while the books are compared
  await Promise.all(cast.gateways.map((gateway) => gateway.stop()));
  const { events, faults } = await readLedger(world.postgres.url(parts.database));
  const transfers = await readTransfers(world.chain.url, world.tokens, parts.payTo, parts.fromBlock);
  const payments = recordedPayments(events);
  const facts = { book, transfers, payments, events };
  const runs = cast.runners.flatMap((runner) => runner.runs);
  const deaths = cast.gateways.flatMap((gateway) => gateway.faults);
  const violations = [
    ...moneyViolations(transfers, payments, book),
    ...answerViolations(facts),
    ...workViolations(payments, events, runs),
    ...transitionViolations(events),
    ...[...faults, ...statsFaults(told, events)].map(violation('ledger_unsound')),
    ...parts.left.map(violation('settlement_left_open')),
    ...deaths.map(violation('gateway_died')),
  ];
  return {
    violations,
    landed: transfers.length,
    excused: countExcused(facts),
    ledger: events.map((event) => JSON.stringify(event)).join('\n'),
  };
}

function violation(kind: Violation['kind']): (words: string) => Violation {
  return (words) => ({ kind, words });
}

async function readLedger(url: string): Promise<{ events: RecordedEvent[]; faults: string[] }> {
  const pool = openPool({ url, maxConnections: 2 });
  const owner = new pg.Client(url);
  await owner.connect();
  try {
    return await ledgerFaults(openDatabase(pool), owner);
  } finally {
    await owner.end();
    await pool.end();
  }
}

interface Stats {
  readonly gateway: string;
  readonly as_of_seq: number;
  readonly counters: object;
}

async function askForStats(cast: Cast): Promise<Stats[]> {
  return Promise.all(
    cast.gateways.map(async ({ url, name, untilUp }) => {
      await untilUp();
      const stats = (await (await fetch(`${url}/x402/stats`)).json()) as Omit<Stats, 'gateway'>;
      return { ...stats, gateway: name };
    }),
  );
}

/** What anybody can ask for must be the fold of the events, whichever gateway answers. */
function* statsFaults(told: readonly Stats[], events: readonly RecordedEvent[]): Generator<string> {
  for (const { gateway, as_of_seq: head, counters } of told) {
    const countOf = new Map<string, number>();
    for (const { type, seq } of events) if (seq <= head) countOf.set(type, (countOf.get(type) ?? 0) + 1);
    const expected = JSON.stringify(sorted(countersFrom(countOf)));
    const found = JSON.stringify(sorted(counters));
    if (found !== expected) yield `gateway ${gateway} tells ${found}, the events say ${expected}`;
  }
}

function sorted(counters: object): [string, unknown][] {
  return Object.entries(counters).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

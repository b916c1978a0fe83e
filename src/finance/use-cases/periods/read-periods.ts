import { periodStream, isPeriodEvent, Periods } from '../../rules/periods/periods.ts';
import type pg from 'pg';
import { decodeLeaf } from '../../../ledger/rules/event.ts';
import type { LedgerSource } from '../books/source.ts';
import { readStream } from '../../../ledger/store/streams.ts';

/** The periods of the ledger in a database, and the version of their stream. */
export async function readPeriods(
  pool: pg.Pool,
): Promise<{ readonly periods: Periods; readonly version: number }> {
  const { events } = await readStream(pool, periodStream);
  return { periods: new Periods(events.filter(isPeriodEvent)), version: events.length };
}

const marker = Buffer.from(`"stream":"${periodStream}"`);

/** The periods of any ledger that can be read: every leaf is looked at, and only theirs are parsed. */
export async function findPeriods(source: LedgerSource): Promise<Periods> {
  const periods = new Periods();
  for await (const leaves of source.leaves())
    for (const leaf of leaves) {
      if (!leaf.includes(marker)) continue;
      const event = decodeLeaf(leaf);
      if (isPeriodEvent(event)) periods.take(event);
    }
  return periods;
}

import type pg from 'pg';
import { openPostedBooks } from '../../../audit/use-cases/projections/posted-books.ts';
import { projectToHead } from '../../../audit/use-cases/projections/project.ts';
import type { Period } from '../../../base/values/period.ts';
import { queriesOn } from '../../../ledger/store/database.ts';
import { readLastBefore } from '../../../ledger/store/export.ts';
import { readProjection } from '../../../ledger/store/projection.ts';
import { readSweepsUpTo } from '../../../payments/store/refunds.ts';
import { creditCurrency, type KeptBooks, type KeptPart } from './kept-books.ts';
import { batchOf, PayoutBatches } from './payout-batches.ts';
import { ExportError } from './source.ts';

/**
 * Books from the postings of a database: their cost follows the period, and not the age of the ledger. A period that is not over must not
 * be asked for.
 * @param given the currency of credit, for a ledger that does not say it
 * @throws ExportError if the read models have no postings yet, or the ledger says another currency
 */
export async function readPostedBooks(
  pool: pg.Pool,
  { fromMs, toMs }: Period,
  given: string | undefined,
): Promise<KeptBooks> {
  const events = await readLastBefore(pool, toMs);
  const projection = await readProjection(pool);
  if (!projection.hasPostings)
    throw new ExportError(
      'the read models have no postings yet, of which books are made: a gateway of this version adds them, or `tollbook projections rebuild`. Then run the command again',
    );
  if (projection.seq < events) await projectToHead({ pool, db: queriesOn(pool) });
  const day = new Date(fromMs).toISOString().slice(0, 10);
  const [midnight, after] = [await readLastBefore(pool, Date.parse(day)), await readLastBefore(pool, fromMs)];
  creditCurrency((await openPostedBooks(pool)).currency, given);
  return {
    events,
    async *keep(): AsyncGenerator<KeptPart> {
      const books = await openPostedBooks(pool, given);
      const batches = new PayoutBatches();
      for (const { data } of await readSweepsUpTo(pool, events)) batches.take(data);
      yield { kind: 'balances', balances: await books.balances(day, { after: midnight, last: after }) };
      for await (const entry of books.entries({ after, last: events }))
        yield { kind: 'entry', entry, payoutBatch: batchOf(entry, batches) };
    },
  };
}

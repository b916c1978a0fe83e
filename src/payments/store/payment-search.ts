import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { queriesOn } from '../../ledger/store/database.ts';
import { streamName } from '../../ledger/store/expressions.ts';
import { activeGeneration, type ListedPayment, paymentsOf, readPage } from '../../ledger/store/payments.ts';

/** Of one way to find them, before they are put in order. */
const mostOfOneWay = 200;

/** The expression of the index: a transaction as sixteen words of two bytes. */
const words = sql.raw<number[]>(
  `array[${Array.from({ length: 16 }, (_, word) => `get_byte(transaction, ${2 * word}) * 256 + get_byte(transaction, ${2 * word + 1})`).join(', ')}]`,
);
const digitsAWord = 4;
/** Wherever they begin, this many digits have a whole word in them. */
const fewestInside = 2 * digitsAWord - 1;

/** The words that digits contain, for each place within a word at which they may begin. */
function wordsWithin(digits: string): readonly (readonly number[])[] {
  return Array.from({ length: digitsAWord }, (_, skipped) =>
    (digits.slice(skipped).match(/.{4}/g) ?? []).map((word) => Number.parseInt(word, 16)),
  );
}

/** Whether the digits are anywhere in the transaction: by the index, then by the digits themselves. */
function isInside(digits: string): RawBuilder<boolean> {
  const ways = wordsWithin(digits).map((found) => sql`${words} @> ${found}::int[]`);
  return sql`length(transaction) = 32 and (${sql.join(ways, sql` or `)}) and position(${digits} in encode(transaction, 'hex')) > 0`;
}

/**
 * Up to `limit` payments whose quote, transaction or payer begins with these hexadecimal digits, 4 to 64 of them, or whose transaction
 * has them anywhere, if they are 7 or more; the newest first. Each way is by an index, and finds up to 200.
 */
export async function searchPayments(
  pool: pg.Pool,
  digits: string,
  limit: number,
): Promise<readonly ListedPayment[]> {
  const db = queriesOn(pool);
  const [lowest, highest] = ['0', 'f'].map((end) => Buffer.from(digits.padEnd(64, end), 'hex'));
  const [lowestPayer, highestPayer] = [lowest, highest].map((end) => end?.subarray(0, 20));
  const isPayer = digits.length <= 40;
  // raw SQL: four ways of four indexes, each with its own limit
  const found = sql<number>`(
    (select seq from tollbook.payment where generation = ${activeGeneration(db)}
      and transaction between ${lowest} and ${highest} order by transaction limit ${mostOfOneWay})
    union all
    (select seq from tollbook.payment where ${isPayer} and generation = ${activeGeneration(db)}
      and payer between ${lowestPayer} and ${highestPayer} order by payer, seq desc limit ${mostOfOneWay})
    union all
    (select seq from tollbook.payment where generation = ${activeGeneration(db)}
      and ${digits.length < fewestInside ? sql`false` : isInside(digits)} limit ${mostOfOneWay})
    union all
    (select seq from tollbook.event where stream between ${lowest} and ${highest}
      and type in ('settlement_started', 'payment_recovered') order by stream limit ${mostOfOneWay}))`;
  const page = paymentsOf(db, {})
    .where('tollbook.payment.seq', 'in', found)
    .orderBy('tollbook.payment.seq', 'desc')
    .limit(limit);
  return (await readPage(pool, page)).rows;
}

/** The stream of a call that was paid, by the call's id. */
export async function findStreamOfCall(pool: pg.Pool, callId: number): Promise<string | undefined> {
  const db = queriesOn(pool);
  const row = await db
    .selectFrom('tollbook.paid_call')
    .innerJoin('tollbook.event', (join) =>
      join.on('tollbook.event.lane_id', '=', 1).onRef('tollbook.event.seq', '=', 'tollbook.paid_call.seq'),
    )
    .select(({ ref }) => streamName(ref('tollbook.event.stream')).as('stream'))
    .where('tollbook.paid_call.generation', '=', activeGeneration(db))
    .where('tollbook.paid_call.call_id', '=', callId)
    .executeTakeFirst();
  return row?.stream;
}

export type CallDetails = NonNullable<Awaited<ReturnType<typeof findCallDetails>>>;

/** When a waiting call is tried, if that is in the future. */
export function nextAttemptAt({ status, dueAt }: Pick<CallDetails, 'status' | 'dueAt'>): Date | undefined {
  return status === 'ready' && dueAt.getTime() > Date.now() ? dueAt : undefined;
}

/** What the outbox says of a call; undefined for one that is not in the outbox any more: it was completed, or given up. */
export async function findCallDetails(pool: pg.Pool, callId: number) {
  return queriesOn(pool)
    .selectFrom('tollbook.call')
    .select(['call_id as callId', 'status', 'attempt', 'due_at as dueAt'])
    .select(['last_runner as runner', 'last_reason as reason', 'last_error as error'])
    .where('call_id', '=', callId)
    .executeTakeFirst();
}

import { sql } from 'kysely';
import type pg from 'pg';
import { queriesOn } from './database.ts';

/** What guesses are counted by: this many of it are free, and each one above makes its wait twice as long. */
export interface GuessSubject {
  readonly subject: string;
  readonly free: number;
}

export interface GuessTurn {
  /** 0: the guess was counted against every subject; else against none, and the next may come after this time. */
  readonly waitMs: number;
  /** The largest count of the subjects, with this guess. */
  readonly guesses: number;
}

/** Counts a guess at a user's second factor over all processes, against all of the subjects or none of them. */
export async function takeGuess(
  pool: pg.Pool,
  userId: string,
  subjects: readonly GuessSubject[],
): Promise<GuessTurn> {
  const names = subjects.map(({ subject }) => subject);
  const free = subjects.map((one) => one.free);
  const { wait_ms, guesses } = await queriesOn(pool)
    .selectFrom(
      sql<{ wait_ms: number; guesses: number }>`identity.take_guess(${userId}, ${names}, ${free})`.as('turn'),
    )
    .select(['wait_ms', 'guesses'])
    .executeTakeFirstOrThrow();
  return { waitMs: wait_ms, guesses };
}

/** Forgets the guesses of some subjects of a user; those of the account keep all but the last one. */
export async function forgetGuesses(
  pool: pg.Pool,
  userId: string,
  subjects: readonly string[],
  account: string,
): Promise<void> {
  const db = queriesOn(pool);
  await db
    .updateTable('identity.factor_guess')
    .set({ guesses: sql<number>`greatest(0, guesses - 1)` })
    .where('user_id', '=', userId)
    .where('subject', '=', account)
    .execute();
  await db
    .deleteFrom('identity.factor_guess')
    .where('user_id', '=', userId)
    .where('subject', 'in', subjects)
    .where('subject', '<>', account)
    .execute();
}

/** Operators at whose second factor at least this many guesses were made from one subject, within a day of the last. */
export async function listGuessed(
  pool: pg.Pool,
  leastGuesses: number,
): Promise<{ readonly name: string; readonly guesses: number }[]> {
  return queriesOn(pool)
    .selectFrom('identity.factor_guess as guess')
    .innerJoin('identity.operator as operator', 'operator.user_id', 'guess.user_id')
    .select(({ fn }) => ['operator.name', fn.max<number>('guess.guesses').as('guesses')])
    .where('guess.guesses', '>=', leastGuesses)
    .where('guess.last_at', '>', sql<Date>`tollbook.clock() - interval '1 day'`)
    .groupBy('operator.name')
    .execute();
}

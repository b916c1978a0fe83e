import pg from 'pg';
import { type BatchAnswer, type HaltAnswer, isPoison, type UncontendedAnswer } from './append-batch.ts';
import type { DatabaseOptions } from './database.ts';
import { Session, sessionConfig } from './session.ts';
import { late, within } from '../../base/runtime/within.ts';
import { pause } from '../../base/runtime/pause.ts';

/** Longer than the server's own statement time-out: past it the network is at fault, not the statement. */
const answerTimeoutMs = 35_000;

/** Null: nothing was recorded, and the batch has to be decided. */
type Answer = BatchAnswer | UncontendedAnswer | HaltAnswer | null;

interface AnswerRow<T> {
  readonly answer: T;
}

/** One connection that is replaced when it breaks, for statements that may safely be sent again. */
export interface LaneConnection {
  /** The answer of an append statement. Rejects if the connection or the statement failed. */
  append(statement: string): Promise<Answer>;
  /** The same for a statement that reads. */
  read<T>(statement: string): Promise<T>;
  /** Waits; false if close() ended the wait. */
  pause(ms: number): Promise<boolean>;
  readonly closed: boolean;
  close(): Promise<void>;
}

export function createLaneConnection(options: DatabaseOptions): LaneConnection {
  let client: Session | undefined;
  const closing = new AbortController();

  const drop = (broken: Session): void => {
    if (client === broken) client = undefined;
    broken.end().catch(() => {});
  };

  const connected = async (): Promise<Session> => {
    if (client) return client;
    const fresh = new Session(sessionConfig(options));
    fresh.on('error', () => drop(fresh));
    fresh.on('end', () => drop(fresh));
    await fresh.connect();
    if (closing.signal.aborted) {
      await fresh.end();
      throw new Error('Connection terminated: it was closed while it was made');
    }
    client = fresh;
    return fresh;
  };

  const ask = async <T>(statement: string): Promise<T> => {
    const current = await connected();
    try {
      const answered: pg.QueryResult<AnswerRow<T>> | pg.QueryResult<AnswerRow<T>>[] | typeof late =
        await within(answerTimeoutMs, current.query<AnswerRow<T>>(statement));
      if (answered === late) throw new Error(`The database did not answer within ${answerTimeoutMs} ms`);
      // several statements in one message have several results: the answer is in the last one
      const row = (Array.isArray(answered) ? answered.at(-1) : answered)?.rows[0];
      if (!row) throw new Error('the statement returned no row');
      return row.answer;
    } catch (error) {
      // a poison row or a lock time-out is not a fault of the connection; any other error may be (a demoted primary)
      if (!isPoison(error) && !isContention(error)) drop(current);
      throw error;
    }
  };

  return {
    get closed() {
      return closing.signal.aborted;
    },
    append: ask,
    read: ask,
    pause: (ms) => pause(ms, closing.signal),
    async close() {
      closing.abort();
      await client?.end().catch(() => {});
    },
  };
}

function isContention(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(?:55P03|40)/.test(error.code ?? '');
}

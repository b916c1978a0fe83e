import pg from 'pg';
import { type BatchAnswer, isPoison } from './append-batch.ts';
import { type DatabaseOptions, sessionConfig } from './database.ts';

/** Longer than the server's own statement time-out: past it the network, not the statement, is the trouble. */
const answerTimeoutMs = 35_000;

interface AnswerRow {
  readonly answer: BatchAnswer;
}

/** One connection that is made anew whenever it broke, for statements that may safely be sent again. */
export interface LaneConnection {
  /** The answer of an append statement. Rejects where the connection or the statement failed. */
  append(statement: string): Promise<BatchAnswer>;
  /** Waits, but not past close(). */
  pause(ms: number): Promise<void>;
  readonly closed: boolean;
  close(): Promise<void>;
}

export function createLaneConnection(options: DatabaseOptions): LaneConnection {
  let client: pg.Client | undefined;
  let closed = false;
  let wake: (() => void) | undefined;

  const drop = (broken: pg.Client): void => {
    if (client === broken) client = undefined;
    broken.end().catch(() => {});
  };

  const connected = async (): Promise<pg.Client> => {
    if (client) return client;
    const fresh = new pg.Client(sessionConfig(options));
    fresh.on('error', () => drop(fresh));
    fresh.on('end', () => drop(fresh));
    await fresh.connect();
    client = fresh;
    return fresh;
  };

  return {
    get closed() {
      return closed;
    },
    async append(statement) {
      const current = await connected();
      let timer: NodeJS.Timeout | undefined;
      try {
        const silence = new Promise<never>((_, reject) => {
          timer = setTimeout(() => reject(new Error('the database did not answer in time')), answerTimeoutMs);
        });
        const answered: pg.QueryResult<AnswerRow> | pg.QueryResult<AnswerRow>[] = await Promise.race([
          current.query<AnswerRow>(statement),
          silence,
        ]);
        // several statements in one message are several results: the last one is asked for
        const row = (Array.isArray(answered) ? answered.at(-1) : answered)?.rows[0];
        if (!row) throw new Error('the statement returned no row');
        return row.answer;
      } catch (error) {
        // a poison row and a lock that took too long say nothing against the connection; all else may (a demoted primary)
        if (!isPoison(error) && !isContention(error)) drop(current);
        throw error;
      } finally {
        clearTimeout(timer);
      }
    },
    async pause(ms) {
      if (closed) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    },
    async close() {
      closed = true;
      wake?.();
      await client?.end().catch(() => {});
    },
  };
}

function isContention(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(?:55P03|40)/.test(error.code ?? '');
}

import { randomUUID } from 'node:crypto';
import { appendStatement, type BatchAnswer, type EncodedCommand, isPoison } from './append-batch.ts';
import type { DatabaseOptions } from './database.ts';
import { haltOf, LedgerInconsistentError, wentBack } from './halt.ts';
import { createLaneConnection, type LaneConnection } from './lane-connection.ts';
import { fullAnswer, uncontendedStatement } from './uncontended.ts';
import { backOffMs } from '../domain/values/back-off.ts';

/** Before a batch is sent again. */
const pauses = { firstMs: 20, longestMs: 1_000 };

/** The lane was closed before the command was known to be recorded: read the stream to find out. */
export class LaneClosedError extends Error {
  override readonly name = 'LaneClosedError';
}

export interface Flusher {
  /**
   * Sends a batch until it is answered; `atOnce` where the first time sufficed.
   * Rejects with the database's error where sending again cannot help, with LedgerInconsistentError where the ledger is not
   * the one that answered before.
   */
  send(
    commands: readonly EncodedCommand[],
    onBroken: (error: unknown) => void,
  ): Promise<{ answer: BatchAnswer; atOnce: boolean }>;
  close(): Promise<void>;
}

/**
 * One connection with a name of its own. The database keeps the last answer for that name, so a batch that is sent
 * again after a lost connection, under the same number, is done once and answered twice. Each batch names the last one that
 * was answered: a database that lacks it went back in time.
 */
export function createFlusher(laneId: number, options: DatabaseOptions): Flusher {
  const flusherId = randomUUID();
  const connection: LaneConnection = createLaneConnection(options);
  let batchNo = 0;
  /** Its number and its head; a batch that was refused has a number, but no answer. */
  let acknowledged = { batchNo: 0, seq: 0 };
  return {
    async send(commands, onBroken) {
      const number = ++batchNo;
      const write = () => uncontendedStatement(laneId, flusherId, number, acknowledged.batchNo, commands);
      const decide = () => appendStatement(laneId, flusherId, number, acknowledged.batchNo, commands);
      for (let attempt = 0; ; attempt++) {
        try {
          // Either way under the batch's number: an earlier attempt may have been recorded, or may still be, without an answer.
          const written = write();
          const recorded =
            (written && (await connection.append(written))) ?? (await connection.append(decide()));
          if (!recorded) throw new Error('the append function did not decide a batch');
          const answer = fullAnswer(recorded, commands);
          if ('halt' in answer) throw new LedgerInconsistentError(haltOf(answer, acknowledged.seq));
          if (answer.seq < acknowledged.seq)
            throw new LedgerInconsistentError(wentBack(acknowledged.seq, answer.seq));
          acknowledged = { batchNo: number, seq: answer.seq };
          return { answer, atOnce: attempt === 0 };
        } catch (error) {
          if (error instanceof LedgerInconsistentError) throw error;
          if (isPoison(error) || connection.closed)
            throw connection.closed ? new LaneClosedError('the ledger closed') : error;
          onBroken(error);
          options.onError?.(error instanceof Error ? error : new Error(String(error)));
          await connection.pause(backOffMs(pauses, attempt));
        }
      }
    },
    close: () => connection.close(),
  };
}

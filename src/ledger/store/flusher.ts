import { randomUUID } from 'node:crypto';
import { appendStatement, type BatchAnswer, type EncodedCommand, isPoison } from './append-batch.ts';
import type { DatabaseOptions } from './database.ts';
import { type LedgerHalt, LedgerInconsistentError, recoveredSince, wentBack } from './halt.ts';
import { createLaneConnection, type LaneConnection } from './lane-connection.ts';
import { fullAnswer, uncontendedStatement } from './uncontended.ts';
import { backOffMs } from '../../base/values/back-off.ts';
import pg from 'pg';

/** An event that the database had acknowledged: all that its leaf has. */
interface KnownEvent {
  readonly seq: number;
  readonly stream: string;
  readonly version: number;
  readonly type: string;
  /** Canonical JSON. */
  readonly data: string;
  /** RFC 3339 UTC. */
  readonly at: string;
}

/** The last event that a batch is known to have recorded; undefined where it recorded none, or refusals alone. */
function lastRecorded(
  commands: readonly EncodedCommand[],
  { results, at }: BatchAnswer,
): KnownEvent | undefined {
  const index = results.findLastIndex((one) => one.outcome === 'ok' && 'seq' in one && one.seq !== null);
  const [last, result] = [commands[index]?.last, results[index]];
  if (!last || result?.outcome !== 'ok' || !('seq' in result) || result.seq === null) return undefined;
  return { ...last, seq: result.seq, version: result.version, at };
}

const eventTime = `to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** Reads an event that the database had acknowledged: the answer is a `KnownEvent`, or null. */
function readStatement(laneId: number, seq: number): string {
  return `select (select json_build_object('seq', seq, 'stream', tollbook.stream_name(stream), 'version', version, 'type', type,
    'data', data, 'at', ${eventTime}) from tollbook.event where lane_id = ${laneId} and seq = ${seq}) as answer`;
}

/** What became of an event: it is on record, it is missing, or it is missing and an operator has recovered the ledger since. */
type Fate = 'kept' | 'lost' | 'recovered';

/** The answer is a `Fate`. */
function fateStatement(laneId: number, event: KnownEvent): string {
  const [stream, type, data, at] = [event.stream, event.type, event.data, event.at].map((text) =>
    pg.escapeLiteral(text),
  );
  // the character after the colon ends the range of the streams of recoveries
  return `select case
    when exists (select from tollbook.event where lane_id = ${laneId} and seq = ${event.seq} and version = ${event.version}
      and stream = tollbook.stream_key(${stream}) and type = ${type} and data = ${data} and ${eventTime} = ${at}) then 'kept'
    when exists (select from tollbook.event where stream >= tollbook.stream_key('recovery:') and stream < tollbook.stream_key('recovery;')
      and type = 'ledger_recovered' and at > ${at}::timestamptz) then 'recovered'
    else 'lost' end as answer`;
}

/** Before a batch is sent again. */
const pauses = { firstMs: 20, longestMs: 1_000 };

/**
 * The lane was closed, or the answer was pruned, before the command was known to be recorded: read the stream to find out.
 */
export class LaneClosedError extends Error {
  override readonly name = 'LaneClosedError';
}

/** The last batch that was answered, the head of the ledger then, and the last event of which all is known. */
interface Acknowledged {
  readonly batchNo: number;
  readonly seq: number;
  readonly event: KnownEvent | undefined;
}

export interface Flusher {
  /**
   * Sends a batch until it is answered; `atOnce` if the first time sufficed.
   * Rejects with the database's error where sending again cannot help, with LedgerInconsistentError if the ledger is not
   * the one that answered before.
   */
  send(
    commands: readonly EncodedCommand[],
    onBroken: (error: unknown) => void,
  ): Promise<{ answer: BatchAnswer; atOnce: boolean }>;
  close(): Promise<void>;
}

/**
 * One connection with its own name. The database keeps the last answer for that name, so a batch that is sent
 * again after a lost connection, under the same number, is done once and answered twice. Each batch names the last one that
 * was answered. A database that lacks it went back in time if it lacks the last event of that answer too. Else it has pruned
 * the answer kept for a process that slept: this sender takes another name, and no other is concerned.
 */
export function createFlusher(laneId: number, options: DatabaseOptions): Flusher {
  let flusherId = randomUUID();
  const connection: LaneConnection = createLaneConnection(options);
  let batchNo = 0;
  /** Its number and its head; a batch that was refused has a number, but no answer. */
  let acknowledged: Acknowledged = { batchNo: 0, seq: 0, event: undefined };

  const acknowledge = async (
    number: number,
    commands: readonly EncodedCommand[],
    answer: BatchAnswer,
  ): Promise<void> => {
    const { seq } = answer;
    const event = lastRecorded(commands, answer) ?? acknowledged.event;
    acknowledged = { batchNo: number, seq, event };
    // events of other processes count too; not for each batch, since it takes a round trip
    if (seq === 0 || event?.seq === seq || (event && commands.length > 0)) return;
    const last = await connection.read<KnownEvent | null>(readStatement(laneId, seq)).catch(() => null);
    if (last) acknowledged = { ...acknowledged, event: last };
  };

  /** Why the ledger that lacks the last batch is not the one that answered it; undefined if it is. */
  const differenceOf = async (foundSeq: number): Promise<LedgerHalt | undefined> => {
    const { seq, event } = acknowledged;
    const fate = event && (await connection.read<Fate>(fateStatement(laneId, event)));
    if (fate === 'recovered') return recoveredSince(seq);
    return fate === 'lost' || foundSeq < seq ? wentBack(seq, foundSeq) : undefined;
  };

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
          if ('halt' in answer) {
            const { seq, reason } = answer.halt;
            const halt = reason === null ? await differenceOf(seq) : { reason, isRecorded: true };
            if (halt) throw new LedgerInconsistentError(halt);
            flusherId = randomUUID();
            acknowledged = { ...acknowledged, batchNo: 0 };
            // an answer to an earlier attempt may have been pruned as well
            if (attempt > 0 && commands.length > 0)
              throw new LaneClosedError('the answer to this append was pruned: it may have been recorded');
            continue;
          }
          if (answer.seq < acknowledged.seq)
            throw new LedgerInconsistentError(wentBack(acknowledged.seq, answer.seq));
          await acknowledge(number, commands, answer);
          return { answer, atOnce: attempt === 0 };
        } catch (error) {
          if (error instanceof LedgerInconsistentError || error instanceof LaneClosedError) throw error;
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

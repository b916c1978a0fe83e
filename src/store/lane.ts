import { randomUUID } from 'node:crypto';
import {
  type AppendOutcome,
  appendStatement,
  type BatchAnswer,
  encodeCommand,
  isPoison,
  type LaneCommand,
} from './append-batch.ts';
import type { DatabaseOptions } from './database.ts';
import { createLaneConnection, type LaneConnection } from './lane-connection.ts';

/** The lane's queue is full: nothing was recorded, and nothing will be. */
export class LaneFullError extends Error {
  override readonly name = 'LaneFullError';
}

/** The lane was closed before the command was recorded for sure. Whoever needs to know reads the stream. */
export class LaneClosedError extends Error {
  override readonly name = 'LaneClosedError';
}

export interface LaneOptions extends DatabaseOptions {
  readonly laneId?: number;
  /** First appends that may wait; more are refused. */
  readonly maxQueued?: number;
  readonly maxBatch?: number;
  readonly flushers?: number;
}

export interface LaneState {
  /** The head of the ledger as of the last answer. */
  readonly seq: number;
  /** Calls that are held, ready or leased. */
  readonly openCalls: number;
  /** The database's clock minus this process's, in milliseconds. */
  readonly clockOffsetMs: number;
  /** Since when no batch could be delivered; undefined while the lane works. */
  readonly brokenSince: number | undefined;
}

interface Waiting {
  readonly text: string;
  readonly urgent: boolean;
  readonly resolve: (outcome: AppendOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/** The only way for this process to append. Batches form by themselves while a flusher is busy: there is no timer. */
export interface Lane {
  /**
   * Records a command and tells what became of it. Waits as long as the database is away: an append that was sent may
   * be recorded at any time, so there is no honest moment to give up.
   * Throws LaneFullError at once when too many wait (never for `urgent`: money has already moved), ZodError for an event
   * that breaks its schema, LaneClosedError when the lane closes first.
   */
  append(command: LaneCommand, options?: { readonly urgent?: boolean }): Promise<AppendOutcome>;
  readonly state: LaneState;
  /** Finishes what is queued, for at most `graceMs`, then rejects the rest. */
  close(graceMs?: number): Promise<void>;
}

const maxBatchBytes = 1 << 20;

export function openLane(options: LaneOptions): Lane {
  const { laneId = 1, maxQueued = 4_096, maxBatch = 128, flushers = 2 } = options;
  const urgent: Waiting[] = [];
  const first: Waiting[] = [];
  const idle = Array.from({ length: flushers }, () => createFlusher(laneId, options));
  const all = [...idle];
  const state = { seq: 0, openCalls: 0, clockOffsetMs: 0, brokenSince: undefined as number | undefined };
  let scheduled = false;
  let closing = false;
  let drained: (() => void) | undefined;

  const schedule = (): void => {
    if (scheduled || idle.length === 0) return;
    scheduled = true;
    setImmediate(flush);
  };

  const flush = (): void => {
    scheduled = false;
    while (idle.length > 0 && urgent.length + first.length > 0) {
      const flusher = idle.pop();
      if (flusher) void run(flusher, takeBatch(urgent, first, maxBatch));
    }
    if (closing && urgent.length + first.length === 0 && idle.length === all.length) drained?.();
  };

  const run = async (flusher: Flusher, batch: Waiting[]): Promise<void> => {
    await deliver(flusher, batch);
    idle.push(flusher);
    if (urgent.length + first.length > 0 || closing) schedule();
  };

  const deliver = async (flusher: Flusher, batch: Waiting[]): Promise<void> => {
    try {
      const answer = await flusher.send(
        batch.map(({ text }) => text),
        (broken) => (state.brokenSince = broken ? (state.brokenSince ?? Date.now()) : undefined),
      );
      observe(answer);
      settle(batch, answer);
    } catch (error) {
      if (isPoison(error) && batch.length > 1) {
        const middle = batch.length >> 1;
        await deliver(flusher, batch.slice(0, middle));
        await deliver(flusher, batch.slice(middle));
      } else {
        for (const { reject } of batch) reject(error);
      }
    }
  };

  const observe = (answer: BatchAnswer): void => {
    if (answer.seq < state.seq) return;
    state.seq = answer.seq;
    state.openCalls = answer.open_calls;
    state.clockOffsetMs = Date.parse(answer.at) - Date.now();
  };

  const settle = (batch: readonly Waiting[], answer: BatchAnswer): void => {
    // deferred commands go first in the next batch, in their old order
    for (let i = batch.length - 1; i >= 0; i--) {
      const command = batch[i];
      const result = answer.results[i];
      if (!command || !result) throw new Error('the append function left a command unanswered');
      if (result.outcome === 'deferred') (command.urgent ? urgent : first).unshift(command);
      else command.resolve(result.outcome === 'ok' ? { ...result, at: answer.at } : result);
    }
  };

  return {
    state,
    async append(command, { urgent: isUrgent = false } = {}) {
      if (closing && !isUrgent) throw new LaneClosedError('the ledger is closing');
      if (!isUrgent && first.length >= maxQueued) throw new LaneFullError('too many appends are waiting');
      const text = encodeCommand(command);
      return new Promise((resolve, reject) => {
        (isUrgent ? urgent : first).push({ text, urgent: isUrgent, resolve, reject });
        schedule();
      });
    },
    async close(graceMs = 10_000) {
      closing = true;
      const done = new Promise<void>((resolve) => (drained = resolve));
      schedule();
      const timer = setTimeout(() => drained?.(), graceMs);
      await done;
      clearTimeout(timer);
      for (const { reject } of [...urgent.splice(0), ...first.splice(0)])
        reject(new LaneClosedError('the ledger closed'));
      await Promise.all(all.map((flusher) => flusher.close()));
    },
  };
}

function takeBatch(urgent: Waiting[], first: Waiting[], maxBatch: number): Waiting[] {
  const batch: Waiting[] = [];
  let bytes = 0;
  for (const queue of [urgent, first]) {
    let taken = 0;
    while (taken < queue.length && batch.length < maxBatch && bytes < maxBatchBytes) {
      const command = queue[taken++];
      if (command) {
        batch.push(command);
        bytes += command.text.length;
      }
    }
    queue.splice(0, taken);
  }
  return batch;
}

interface Flusher {
  /** Sends a batch until it is answered. Rejects with the database's error where sending again cannot help. */
  send(commands: readonly string[], onBroken: (broken: boolean) => void): Promise<BatchAnswer>;
  close(): Promise<void>;
}

/**
 * One connection with a name of its own. The database keeps the last answer for that name, so a batch that is sent
 * again after a lost connection, under the same number, is done once and answered twice.
 */
function createFlusher(laneId: number, options: LaneOptions): Flusher {
  const flusherId = randomUUID();
  const connection: LaneConnection = createLaneConnection(options);
  let batchNo = 0;
  return {
    async send(commands, onBroken) {
      const statement = appendStatement(laneId, flusherId, ++batchNo, commands);
      for (let attempt = 0; ; attempt++) {
        try {
          const answer = await connection.query<{ answer: BatchAnswer }>(statement);
          onBroken(false);
          return answer.answer;
        } catch (error) {
          if (isPoison(error) || connection.closed)
            throw connection.closed ? new LaneClosedError('the ledger closed') : error;
          onBroken(true);
          options.onError?.(error instanceof Error ? error : new Error(String(error)));
          await connection.pause(Math.min(1_000, 20 * 2 ** attempt));
        }
      }
    },
    close: () => connection.close(),
  };
}

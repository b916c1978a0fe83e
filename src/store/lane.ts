import { randomUUID } from 'node:crypto';
import {
  type AppendOutcome,
  appendStatement,
  type BatchAnswer,
  type CreditCommand,
  type CreditOutcome,
  type EncodedCommand,
  encodeCommand,
  encodeCreditCommand,
  isPoison,
  type LaneCommand,
} from './append-batch.ts';
import type { DatabaseOptions } from './database.ts';
import { createLaneConnection, type LaneConnection } from './lane-connection.ts';
import { backOffMs } from '../domain/values/back-off.ts';
import { within } from '../runtime/within.ts';

/** Before a batch is sent again. */
const pauses = { firstMs: 20, longestMs: 1_000 };

/** The lane's queue is full: the command was not recorded and will not be. */
export class LaneFullError extends Error {
  override readonly name = 'LaneFullError';
}

/** The lane was closed before the command was known to be recorded: read the stream to find out. */
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
  /** Calls that are pending, ready or leased. */
  readonly openCalls: number;
  /** The database's clock minus this process's, in milliseconds. */
  readonly clockOffsetMs: number;
  /** Since when batches fail; undefined while the lane works. */
  readonly brokenSince: number | undefined;
}

interface Waiting {
  readonly command: EncodedCommand;
  readonly urgent: boolean;
  readonly resolve: (outcome: AppendOutcome | CreditOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/** The only way for this process to append. Batches form by themselves while a flusher is busy: there is no timer. */
export interface Lane {
  /**
   * Records a command and returns the outcome. Waits while the database is unreachable: an append that was sent may still
   * be recorded, so a time-out would report a false failure.
   * Throws LaneFullError at once when too many wait (never for `urgent`: money has already moved), ZodError for an event
   * that breaks its schema, LaneClosedError when the lane closes first.
   */
  append(command: LaneCommand, options?: { readonly urgent?: boolean }): Promise<AppendOutcome>;
  /** The same for a step of a chat. */
  appendCredit(command: CreditCommand, options?: { readonly urgent?: boolean }): Promise<CreditOutcome>;
  /** Brings `state` up to date without appending anything. */
  refresh(): Promise<void>;
  readonly state: LaneState;
  /** Finishes what is queued, for at most `graceMs`, then rejects the rest. */
  close(graceMs?: number): Promise<void>;
}

const maxBatchBytes = 1 << 20;

export function openLane(options: LaneOptions): Lane {
  return new FlushedLane(options);
}

class FlushedLane implements Lane {
  readonly #urgent: Waiting[] = [];
  readonly #first: Waiting[] = [];
  readonly #flushers: readonly Flusher[];
  readonly #idle: Flusher[];
  readonly #maxQueued: number;
  readonly #maxBatch: number;
  readonly #brokenSince = new Map<Flusher, number>();
  #latest = { seq: 0, openCalls: 0, clockOffsetMs: 0 };
  #scheduled = false;
  #closing = false;
  #closed = false;
  #drained: (() => void) | undefined;

  constructor(options: LaneOptions) {
    const { laneId = 1, maxQueued = 4_096, maxBatch = 128, flushers = 1 } = options;
    this.#maxQueued = maxQueued;
    this.#maxBatch = maxBatch;
    this.#flushers = Array.from({ length: flushers }, () => createFlusher(laneId, options));
    this.#idle = [...this.#flushers];
  }

  get state(): LaneState {
    const brokenSince = this.#brokenSince.size === 0 ? undefined : Math.min(...this.#brokenSince.values());
    return { ...this.#latest, brokenSince };
  }

  async append(command: LaneCommand, { urgent = false } = {}): Promise<AppendOutcome> {
    return (await this.#enqueue(() => encodeCommand(command), urgent)) as AppendOutcome;
  }

  async appendCredit(command: CreditCommand, { urgent = false } = {}): Promise<CreditOutcome> {
    return (await this.#enqueue(() => encodeCreditCommand(command), urgent)) as CreditOutcome;
  }

  async #enqueue(encode: () => EncodedCommand, urgent: boolean): Promise<AppendOutcome | CreditOutcome> {
    if (this.#closed || (this.#closing && !urgent)) throw new LaneClosedError('the ledger is closing');
    if (!urgent && this.#first.length >= this.#maxQueued)
      throw new LaneFullError('too many appends are waiting');
    const encoded = encode();
    return new Promise((resolve, reject) => {
      this.#queueOf(urgent).push({ command: encoded, urgent, resolve, reject });
      this.#schedule();
    });
  }

  async refresh(): Promise<void> {
    const flusher = this.#idle.pop();
    // none idle: an answer is expected anyway
    if (flusher) await this.#run(flusher, []);
  }

  async close(graceMs = 10_000): Promise<void> {
    this.#closing = true;
    const done = new Promise<void>((resolve) => (this.#drained = resolve));
    this.#schedule();
    await within(graceMs, done);
    this.#closed = true;
    for (const { reject } of [...this.#urgent.splice(0), ...this.#first.splice(0)]) {
      reject(new LaneClosedError('the ledger closed'));
    }
    await Promise.all(this.#flushers.map((flusher) => flusher.close()));
  }

  #queueOf(urgent: boolean): Waiting[] {
    return urgent ? this.#urgent : this.#first;
  }

  get #queued(): number {
    return this.#urgent.length + this.#first.length;
  }

  #schedule(): void {
    if (this.#scheduled || this.#idle.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    while (this.#queued > 0) {
      const flusher = this.#idle.pop();
      if (!flusher) break;
      void this.#run(flusher, takeBatch(this.#urgent, this.#first, this.#maxBatch));
    }
    if (this.#closing && this.#queued === 0 && this.#idle.length === this.#flushers.length) this.#drained?.();
  }

  async #run(flusher: Flusher, batch: readonly Waiting[]): Promise<void> {
    await this.#deliver(flusher, batch);
    this.#idle.push(flusher);
    if (this.#queued > 0 || this.#closing) this.#schedule();
  }

  async #deliver(flusher: Flusher, batch: readonly Waiting[]): Promise<void> {
    try {
      const { answer, atOnce } = await flusher.send(
        batch.map(({ command }) => command),
        () => {
          if (!this.#brokenSince.has(flusher)) this.#brokenSince.set(flusher, Date.now());
        },
      );
      this.#brokenSince.delete(flusher);
      this.#observe(answer, atOnce);
      this.#settle(batch, answer);
    } catch (error) {
      if (isPoison(error) && batch.length > 1) {
        const middle = batch.length >> 1;
        await this.#deliver(flusher, batch.slice(0, middle));
        await this.#deliver(flusher, batch.slice(middle));
      } else {
        for (const { reject } of batch) reject(error);
      }
    }
  }

  #observe(answer: BatchAnswer, atOnce: boolean): void {
    if (answer.seq < this.#latest.seq) return;
    // the answer to a batch that was sent again may be old, and so is its time
    const clockOffsetMs = atOnce ? answer.clock_ms - Date.now() : this.#latest.clockOffsetMs;
    this.#latest = { seq: answer.seq, openCalls: answer.open_calls, clockOffsetMs };
  }

  #settle(batch: readonly Waiting[], answer: BatchAnswer): void {
    // deferred commands go first in the next batch, in their old order
    for (let i = batch.length - 1; i >= 0; i--) {
      const waiting = batch[i];
      const result = answer.results[i];
      if (!waiting || !result) throw new Error('the append function left a command unanswered');
      if (result.outcome === 'deferred') this.#queueOf(waiting.urgent).unshift(waiting);
      else waiting.resolve(result.outcome === 'ok' ? { ...result, at: answer.at } : result);
    }
  }
}

function takeBatch(urgent: Waiting[], first: Waiting[], maxBatch: number): Waiting[] {
  const batch: Waiting[] = [];
  let bytes = 0;
  for (const queue of [urgent, first]) {
    let taken = 0;
    while (taken < queue.length && batch.length < maxBatch && bytes < maxBatchBytes) {
      const waiting = queue[taken++];
      if (waiting) {
        batch.push(waiting);
        bytes += waiting.command.text.length + (waiting.command.body?.length ?? 0);
      }
    }
    queue.splice(0, taken);
  }
  return batch;
}

interface Flusher {
  /**
   * Sends a batch until it is answered; `atOnce` where the first time sufficed.
   * Rejects with the database's error where sending again cannot help.
   */
  send(
    commands: readonly EncodedCommand[],
    onBroken: () => void,
  ): Promise<{ answer: BatchAnswer; atOnce: boolean }>;
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
          const answer = await connection.append(statement);
          return { answer, atOnce: attempt === 0 };
        } catch (error) {
          if (isPoison(error) || connection.closed)
            throw connection.closed ? new LaneClosedError('the ledger closed') : error;
          onBroken();
          options.onError?.(error instanceof Error ? error : new Error(String(error)));
          await connection.pause(backOffMs(pauses, attempt));
        }
      }
    },
    close: () => connection.close(),
  };
}

import {
  type AppendOutcome,
  type BatchAnswer,
  type CreditCommand,
  type CreditOutcome,
  type EncodedCommand,
  encodeCommand,
  encodeCreditCommand,
  isPoison,
  type LaneCommand,
} from './append-batch.ts';
import { type DatabaseOptions, writeRefusal } from './database.ts';
import { createFlusher, type Flusher, LaneClosedError } from './flusher.ts';
import { type LedgerHalt, LedgerInconsistentError, recordHalt } from './halt.ts';
import type { LedgerEvent } from '../rules/event.ts';
import { within } from '../../base/runtime/within.ts';

/** The lane's queue is full: the command was not recorded and will not be. */
export class LaneFullError extends Error {
  override readonly name = 'LaneFullError';
}

/** The lane reports its steps to it, for measurements. Its methods must not throw. */
export interface LaneObserver {
  /** A batch was answered: how long each of its commands had waited, and how long the batch took. */
  batchAnswered(waitedMs: readonly number[], ms: number): void;
  /** An event was recorded. */
  eventAppended(event: LedgerEvent): void;
}

export interface LaneOptions extends DatabaseOptions {
  readonly laneId?: number;
  /** First appends that may wait; more are refused. */
  readonly maxQueued?: number;
  readonly maxBatch?: number;
  readonly flushers?: number;
  /** Called once, when the ledger is halted. */
  readonly onHalt?: (halt: LedgerHalt) => void;
  readonly observer?: LaneObserver | undefined;
}

export interface LaneState {
  /** The head of the ledger at the last answer. */
  readonly seq: number;
  /** Calls that are pending, ready or leased. */
  readonly openCalls: number;
  /** Those of them that are pending: their money is not proven. */
  readonly unsettledCalls: number;
  /** Those of the open calls that triggers made: no payment has bought them. */
  readonly triggeredCalls: number;
  /** The database's clock minus this process's, in milliseconds. */
  readonly clockOffsetMs: number;
  /** Since when batches fail; undefined while the lane works. */
  readonly brokenSince: number | undefined;
  /** The SQLSTATE with which the database refuses every write, now that batches fail. */
  readonly writesRefused: string | undefined;
  /** How often batches failed and then succeeded: the database may be another one each time. */
  readonly interruptions: number;
  /** Why this process records nothing any more; undefined while the ledger is the one that it knows. */
  readonly halt: LedgerHalt | undefined;
}

interface Waiting {
  readonly source: LaneCommand | CreditCommand;
  readonly command: EncodedCommand;
  /** By the process's monotonic clock. */
  readonly sinceMs: number;
  readonly urgent: boolean;
  readonly resolve: (outcome: AppendOutcome | CreditOutcome) => void;
  readonly reject: (error: unknown) => void;
}

/** How an append is queued. */
export interface AppendOptions {
  /** Money has already moved: it is never refused because too many wait. */
  readonly urgent?: boolean;
  /** No answer depends on it: it may wait this long for another append, to share its batch, commit and lock. */
  readonly mayWaitMs?: number;
}

/**
 * The only way for this process to append. Batches form by themselves while a flusher is busy: there is no timer, but for appends
 * that may wait.
 */
export interface Lane {
  /**
   * Records a command and returns the outcome. Waits while the database is unreachable: an append that was sent may still
   * be recorded, so a time-out would report a false failure.
   * Throws LaneFullError immediately when too many wait (never for `urgent`: money has already moved), ZodError for an event
   * that breaks its schema, LaneClosedError when the lane closes first, or the answer was pruned because this process slept for a
   * day: then it may have been recorded; LedgerInconsistentError once the ledger is halted.
   */
  append(command: LaneCommand, options?: AppendOptions): Promise<AppendOutcome>;
  /** The same for a step of a chat. */
  appendCredit(command: CreditCommand, options?: AppendOptions): Promise<CreditOutcome>;
  /** Brings `state` up to date without appending anything. */
  refresh(): Promise<void>;
  readonly state: LaneState;
  /**
   * Stops this process and, through the database, every other gateway, unless an operator has recovered the ledger since: it is not the
   * one that was written. Every
   * append that waits and every later one rejects with LedgerInconsistentError. Only the first call has an effect.
   */
  halt(found: LedgerHalt): void;
  /** Finishes the queue, for at most `graceMs`, then rejects the rest. */
  close(graceMs?: number): Promise<void>;
}

/** A lane whose appends go through other functions first. */
export function overlayLane(lane: Lane, over: Partial<Pick<Lane, 'append' | 'appendCredit'>>): Lane {
  return {
    append: (command, options) => lane.append(command, options),
    appendCredit: (command, options) => lane.appendCredit(command, options),
    ...over,
    refresh: () => lane.refresh(),
    get state() {
      return lane.state;
    },
    halt: (found) => lane.halt(found),
    close: (graceMs) => lane.close(graceMs),
  };
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
  readonly #options: LaneOptions;
  readonly #recordsHalt = new AbortController();
  readonly #broken = new Map<
    Flusher,
    { readonly sinceMs: number; readonly writesRefused: string | undefined }
  >();
  #latest = { seq: 0, openCalls: 0, unsettledCalls: 0, triggeredCalls: 0, clockOffsetMs: 0 };
  #scheduled = false;
  /** Of the appends that wait for another one. */
  #timer: NodeJS.Timeout | undefined;
  #closing = false;
  #closed = false;
  #interruptions = 0;
  #halt: LedgerHalt | undefined;
  #haltRecorded = Promise.resolve();
  #drained: (() => void) | undefined;

  constructor(options: LaneOptions) {
    const { laneId = 1, maxQueued = 4_096, maxBatch = 128, flushers = 1 } = options;
    this.#options = options;
    this.#maxQueued = maxQueued;
    this.#maxBatch = maxBatch;
    this.#flushers = Array.from({ length: flushers }, () => createFlusher(laneId, options));
    this.#idle = [...this.#flushers];
  }

  get state(): LaneState {
    const { brokenSince, writesRefused } = this.#trouble();
    return {
      ...this.#latest,
      brokenSince,
      writesRefused,
      interruptions: this.#interruptions,
      halt: this.#halt,
    };
  }

  #trouble(): Pick<LaneState, 'brokenSince' | 'writesRefused'> {
    if (this.#broken.size === 0) return { brokenSince: undefined, writesRefused: undefined };
    const all = [...this.#broken.values()];
    const writesRefused = all.find((each) => each.writesRefused !== undefined)?.writesRefused;
    return { brokenSince: Math.min(...all.map(({ sinceMs }) => sinceMs)), writesRefused };
  }

  async append(command: LaneCommand, options: AppendOptions = {}): Promise<AppendOutcome> {
    return (await this.#enqueue(command, () => encodeCommand(command), options)) as AppendOutcome;
  }

  async appendCredit(command: CreditCommand, options: AppendOptions = {}): Promise<CreditOutcome> {
    return (await this.#enqueue(command, () => encodeCreditCommand(command), options)) as CreditOutcome;
  }

  async #enqueue(
    source: LaneCommand | CreditCommand,
    encode: () => EncodedCommand,
    { urgent = false, mayWaitMs = 0 }: AppendOptions,
  ): Promise<AppendOutcome | CreditOutcome> {
    if (this.#halt) throw new LedgerInconsistentError(this.#halt);
    if (this.#closed || (this.#closing && !urgent)) throw new LaneClosedError('the ledger is closing');
    if (!urgent && this.#first.length >= this.#maxQueued)
      throw new LaneFullError('too many appends are waiting');
    const encoded = encode();
    const sinceMs = performance.now();
    return new Promise((resolve, reject) => {
      this.#queueOf(urgent).push({ source, command: encoded, sinceMs, urgent, resolve, reject });
      if (mayWaitMs > 0 && !this.#closing) this.#timer ??= setTimeout(() => this.#schedule(), mayWaitMs);
      else this.#schedule();
    });
  }

  async refresh(): Promise<void> {
    if (this.#halt) return;
    // none idle: an answer is expected anyway. All that are: each keeps its row in the database from being pruned
    await Promise.all(this.#idle.splice(0).map((flusher) => this.#run(flusher, [])));
  }

  halt(found: LedgerHalt): void {
    if (this.#halt) return;
    this.#halt = found;
    this.#rejectWaiting(found);
    if (!found.isRecorded && !found.isOver)
      this.#haltRecorded = recordHalt(this.#options, found, this.#recordsHalt.signal);
    this.#options.onHalt?.(found);
  }

  async close(graceMs = 10_000): Promise<void> {
    this.#closing = true;
    const done = new Promise<void>((resolve) => (this.#drained = resolve));
    this.#schedule();
    await within(graceMs, Promise.all([done, this.#haltRecorded]));
    this.#closed = true;
    for (const { reject } of [...this.#urgent.splice(0), ...this.#first.splice(0)]) {
      reject(new LaneClosedError('the ledger closed'));
    }
    this.#recordsHalt.abort();
    await Promise.all([this.#haltRecorded, ...this.#flushers.map((flusher) => flusher.close())]);
  }

  #rejectWaiting(halt: LedgerHalt): void {
    for (const { reject } of [...this.#urgent.splice(0), ...this.#first.splice(0)])
      reject(new LedgerInconsistentError(halt));
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
    clearTimeout(this.#timer);
    this.#timer = undefined;
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
      const sentMs = performance.now();
      const { answer, atOnce } = await flusher.send(
        batch.map(({ command }) => command),
        (error) => {
          const { sinceMs = Date.now() } = this.#broken.get(flusher) ?? {};
          this.#broken.set(flusher, { sinceMs, writesRefused: writeRefusal(error) });
        },
      );
      this.#noteAnswer(flusher);
      this.#observe(answer, atOnce);
      this.#settle(batch, answer);
      if (batch.length > 0) this.#measure(batch, answer, sentMs);
      // commands that this answer deferred
      if (this.#halt) this.#rejectWaiting(this.#halt);
    } catch (error) {
      if (error instanceof LedgerInconsistentError) this.halt(error.halt);
      if (isPoison(error) || (error instanceof LaneClosedError && !this.#closed)) this.#noteAnswer(flusher);
      if (isPoison(error) && batch.length > 1) {
        const middle = batch.length >> 1;
        await this.#deliver(flusher, batch.slice(0, middle));
        await this.#deliver(flusher, batch.slice(middle));
      } else {
        for (const { reject } of batch) reject(error);
      }
    }
  }

  /** The database has answered, be it that the batch cannot be recorded or that its answer was pruned. */
  #noteAnswer(flusher: Flusher): void {
    if (this.#broken.delete(flusher)) this.#interruptions++;
  }

  #observe(answer: BatchAnswer, atOnce: boolean): void {
    if (answer.seq < this.#latest.seq) return;
    // the answer to a batch that was sent again may be old, and so is its time
    const clockOffsetMs = atOnce ? answer.clock_ms - Date.now() : this.#latest.clockOffsetMs;
    const {
      seq,
      open_calls: openCalls,
      unsettled_calls: unsettledCalls,
      triggered_calls: triggeredCalls,
    } = answer;
    this.#latest = { seq, openCalls, unsettledCalls, triggeredCalls, clockOffsetMs };
  }

  #measure(batch: readonly Waiting[], { results }: BatchAnswer, sentMs: number): void {
    const { observer } = this.#options;
    if (!observer) return;
    observer.batchAnswered(
      batch.map(({ sinceMs }) => Math.max(0, sentMs - sinceMs)),
      performance.now() - sentMs,
    );
    for (const [index, { source }] of batch.entries()) {
      const result = results[index];
      if (result) for (const event of recordedEvents(source, result)) observer.eventAppended(event);
    }
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

function recordedEvents(
  source: LaneCommand | CreditCommand,
  result: BatchAnswer['results'][number],
): readonly LedgerEvent[] {
  if (result.outcome === 'ok') return source.events;
  if (result.outcome === 'refused') return ('refused' in source && source.refused?.[result.code]) || [];
  if (result.outcome === 'lost') return ('lost' in source && source.lost?.events[result.claim]) || [];
  return [];
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

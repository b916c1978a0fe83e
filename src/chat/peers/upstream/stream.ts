import { setImmediate as nextTurn } from 'node:timers/promises';
import { type ChatProgress, createChatReader } from '../../rules/chat-answer.ts';
import { createSseSplitter, type SseEvent } from '../../rules/sse.ts';
import {
  type Fault,
  faultOf,
  type StreamChunk,
  type StreamEnding,
  type UpstreamCause,
  type UpstreamStreaming,
} from './answer.ts';
import type { Exchange } from './exchange.ts';

/** No server of models sends a longer event. */
const longestEventBytes = 1024 * 1024;
/** Comments before the first event with data. */
const maxHeld = 1_000;
/** Events that are read in one turn of the event loop. */
const maxStepsOfTurn = 512;

type ChunkStep =
  | { readonly kind: 'chunk'; readonly chunk: StreamChunk }
  | Fault
  | { readonly kind: 'unterminated' };

/** Reads a stream up to its first event with data; a fault before that means that no stream has begun. */
export async function openStream(
  exchange: Exchange,
  startedAtMs: number,
  maxAnswerBytes: number,
): Promise<UpstreamStreaming | Fault> {
  const maxEventBytes = Math.min(maxAnswerBytes, longestEventBytes);
  const source = new ChunkSource(exchange, maxEventBytes);
  const held: ChunkStep[] = [];
  let heldBytes = 0;
  for (;;) {
    const step = await source.next();
    if (step.kind === 'fault') return stopped(exchange, step);
    // Both would be an end before any event with data.
    if (step.kind === 'unterminated' || step.chunk.role === 'done')
      return stopped(exchange, faultOf('empty', 'The stream has no answer in it'));
    held.push(step);
    heldBytes += step.chunk.raw.length;
    if (heldBytes > maxEventBytes || held.length > maxHeld)
      return stopped(exchange, faultOf('too_large', 'Too much before the first event'));
    if (step.chunk.role !== 'other') {
      exchange.begin();
      source.giveBack(held);
      return new OpenStream(exchange, source, startedAtMs);
    }
  }
}

/** Faults that the exchange cannot detect itself close its connection here. */
function stopped(exchange: Exchange, fault: Fault): Fault {
  exchange.stop(fault.cause, fault.detail);
  return fault;
}

/** Turns the bytes of an exchange into chunks. */
class ChunkSource {
  readonly #exchange: Exchange;
  readonly #splitter: ReturnType<typeof createSseSplitter>;
  readonly #reader = createChatReader();
  readonly #givenBack: ChunkStep[] = [];
  #events: Iterator<SseEvent, undefined> = [][Symbol.iterator]();
  #stepsOfTurn = 0;
  #isEnded = false;
  #hasBytes = false;
  #hasData = false;

  constructor(exchange: Exchange, maxEventBytes: number) {
    this.#exchange = exchange;
    this.#splitter = createSseSplitter(maxEventBytes);
  }

  get progress(): ChatProgress {
    return this.#reader.progress;
  }

  async next(): Promise<ChunkStep> {
    for (;;) {
      if (this.#stepsOfTurn >= maxStepsOfTurn) await nextTurn();
      const atHand = this.#firstAtHand();
      if (atHand) return atHand;
      if (this.#splitter.isTooLarge) return faultOf('too_large', 'An event of the stream is too long');
      if (this.#isEnded) return this.#end();
      const step = await this.#exchange.next();
      if (step.kind === 'fault') return step;
      if (step.kind === 'bytes') this.#split(step.bytes);
      else {
        this.#isEnded = true;
        const rest = this.#splitter.end();
        if (rest?.data) this.#events = [rest][Symbol.iterator]();
      }
    }
  }

  /** The next step, if its bytes have arrived already; not more of them in a row than leave time for others. */
  nextAtHand(): ChunkStep | undefined {
    return this.#stepsOfTurn >= maxStepsOfTurn ? undefined : this.#next();
  }

  /** The same, the first of a turn. */
  #firstAtHand(): ChunkStep | undefined {
    if (this.#stepsOfTurn >= maxStepsOfTurn) this.#stepsOfTurn = 0;
    return this.#next();
  }

  #next(): ChunkStep | undefined {
    this.#stepsOfTurn += 1;
    const given = this.#givenBack.shift();
    if (given) return given;
    for (;;) {
      const { value: event } = this.#events.next();
      if (event) return this.#read(event);
      const bytes = this.#splitter.isTooLarge ? undefined : this.#exchange.takeQueued();
      if (!bytes) return undefined;
      this.#split(bytes);
    }
  }

  /** Steps that were read too early: they are returned first. */
  giveBack(steps: readonly ChunkStep[]): void {
    this.#givenBack.push(...steps);
  }

  #split(bytes: Buffer): void {
    this.#hasBytes = true;
    this.#events = this.#splitter.push(bytes);
  }

  #read({ raw, data, name }: SseEvent): ChunkStep {
    if (data === undefined || data === '') return { kind: 'chunk', chunk: { raw, role: 'other' } };
    if (data.trim() === '[DONE]') return { kind: 'chunk', chunk: { raw, role: 'done' } };
    const reading = this.#reader.readChunk(data);
    if (reading.kind === 'error') return faultOf('error_object', reading.error.message, reading.error);
    if (name === 'error') return faultOf('error_object', 'An event named error');
    if (reading.kind === 'malformed')
      return this.#isEnded
        ? faultOf('cut', 'The stream ended within an event')
        : faultOf('malformed', 'An event of the stream is not a chunk');
    this.#hasData = true;
    return { kind: 'chunk', chunk: { raw, role: reading.isUsageOnly ? 'usage' : 'part' } };
  }

  #end(): ChunkStep {
    if (!this.#hasBytes) return faultOf('empty', 'The body is empty');
    if (!this.#hasData) return faultOf('malformed', 'The body is not an event stream');
    return this.progress.isFinished
      ? { kind: 'unterminated' }
      : faultOf('cut', 'The stream ended within the answer');
  }
}

class OpenStream implements UpstreamStreaming, AsyncIterator<readonly StreamChunk[], undefined> {
  readonly kind = 'streaming';
  readonly firstByteMs: number;
  readonly chunks: AsyncIterable<readonly StreamChunk[]>;
  readonly ending: Promise<StreamEnding>;
  readonly #exchange: Exchange;
  readonly #source: ChunkSource;
  readonly #startedAtMs: number;
  readonly #resolve: (ending: StreamEnding) => void;
  #isOver = false;

  constructor(exchange: Exchange, source: ChunkSource, startedAtMs: number) {
    const { promise, resolve } = Promise.withResolvers<StreamEnding>();
    this.#exchange = exchange;
    this.#source = source;
    this.#startedAtMs = startedAtMs;
    this.#resolve = resolve;
    this.ending = promise;
    this.firstByteMs = performance.now() - startedAtMs;
    this.chunks = { [Symbol.asyncIterator]: () => this };
    void this.#failWhenAborted();
  }

  abort(): void {
    // unread events are still counted: they may contain the usage
    while (!this.#isOver && this.#source.nextAtHand()?.kind === 'chunk');
    this.#exchange.stop('aborted', 'The stream was not read to its end');
    this.#fail(faultOf('aborted', 'The stream was not read to its end'));
  }

  async next(): Promise<IteratorResult<readonly StreamChunk[], undefined>> {
    if (this.#isOver) return over;
    const together: StreamChunk[] = [];
    let step: ChunkStep | undefined = await this.#source.next();
    // an abort may have happened meanwhile
    if (this.#isOver) return over;
    for (; step?.kind === 'chunk'; step = this.#source.nextAtHand()) {
      together.push(step.chunk);
      if (step.chunk.role !== 'done') continue;
      this.#complete(true);
      return { value: together };
    }
    if (together.length > 0) {
      if (step) this.#source.giveBack([step]);
      return { value: together };
    }
    if (step?.kind === 'fault') this.#fail(step);
    else this.#complete(false);
    return over;
  }

  return(): Promise<IteratorResult<readonly StreamChunk[], undefined>> {
    if (!this.#isOver) this.abort();
    return Promise.resolve(over);
  }

  /** Ended by the signal or a time-out while there is no reader: the ending must not wait for one. */
  async #failWhenAborted(): Promise<void> {
    const end = await this.#exchange.over;
    if (end.kind === 'fault' && unread.has(end.cause)) this.#fail(end);
  }

  #fail({ cause, detail, error }: Fault): void {
    this.#finish({ kind: 'failed', cause, detail, beforeFirstByte: false, ...(error && { error }) });
    this.#exchange.stop(cause, detail);
  }

  #complete(isTerminated: boolean): void {
    this.#finish({ kind: 'completed', isTerminated });
    this.#exchange.drain();
  }

  #finish(outcome: Outcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const latencyMs = performance.now() - this.#startedAtMs;
    this.#resolve({ ...outcome, ...this.#source.progress, latencyMs });
  }
}

const unread: ReadonlySet<UpstreamCause> = new Set(['aborted', 'total_timeout', 'slow_reader']);

type Outcome =
  | { readonly kind: 'completed'; readonly isTerminated: boolean }
  | ({ readonly kind: 'failed'; readonly beforeFirstByte: false } & Omit<Fault, 'kind'>);

const over = { done: true, value: undefined } as const;

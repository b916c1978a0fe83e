/**
 * A thread of `make-ledger.ts`: writes the rows of the paid jobs that it is asked for, as files that PostgreSQL's `COPY` reads. Most of a
 * ledger's making is the payers' signatures, and the threads share it.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { paymentFromData } from '../../src/payments/rules/payment.ts';
import { paymentClaim, transferClaim } from '../../src/payments/store/claims.ts';
import { type LedgerEvent, encodeEventData } from '../../src/ledger/rules/event.ts';
import { encodeHash } from '../../src/ledger/store/claim-key.ts';
import type { Caip2 } from '../../src/base/values/primitives.ts';
import { paidJob, type StreamEvent } from '../../test/support/synthetic-ledger.ts';

/** From one event to the next one of the same jobs. */
const stepMs = 100;

export interface Chunk {
  /** The first job, and how many: a multiple of `besides`. */
  readonly first: number;
  readonly jobs: number;
  readonly eventsFile: string;
  readonly claimsFile: string;
  /** Jobs that are in progress simultaneously. */
  readonly besides: number;
  /** Unix milliseconds of the first job of the ledger, and the milliseconds from these jobs to the next ones. */
  readonly startMs: number;
  readonly everyMs: number;
}

parentPort?.on('message', (chunk: Chunk) => {
  write(chunk);
  parentPort?.postMessage(chunk.first, []);
});

function write({ first, jobs, eventsFile, claimsFile, besides, startMs, everyMs }: Chunk): void {
  const events = openSync(eventsFile, 'w');
  const claims = openSync(claimsFile, 'w');
  for (let n = first; n < first + jobs; n += besides) {
    const beganMs = startMs + (n / besides) * everyMs;
    const told = Array.from({ length: besides }, (_, i) => paidJob(n + i, { startMs: beganMs }));
    const steps = told[0]?.length ?? 0;
    let seq = n * steps;
    let text = '';
    for (let step = 0; step < steps; step++)
      for (const job of told) text += rowOf(job[step], ++seq, step + 1, beganMs + step * stepMs);
    writeSync(events, text);
    writeSync(claims, told.map(claimsOf).join(''));
  }
  closeSync(events);
  closeSync(claims);
}

function rowOf(told: StreamEvent | undefined, seq: number, version: number, atMs: number): string {
  if (!told) throw new Error('jobs of different lengths');
  // in the text format a backslash begins an escape
  const data = encodeEventData(told.event).replaceAll('\\', String.raw`\\`);
  const columns = [seq, new Date(atMs).toISOString(), version, 1, bytes(told.stream), told.event.type, data];
  return `${columns.join('\t')}\n`;
}

/** A payment's authorization and its transfer's log entry. */
function claimsOf(job: readonly StreamEvent[]): string {
  const stream = job[0]?.stream ?? '';
  return job
    .flatMap(({ event }) => claimOf(event))
    .map(encodeHash)
    .map(({ key, binding }) => `${[bytes(`0x${key}`), bytes(`0x${binding}`), bytes(stream)].join('\t')}\n`)
    .join('');
}

function claimOf({ type, data }: LedgerEvent) {
  if (type === 'settlement_started') return [paymentClaim(paymentFromData(data.payment), data.binding)];
  if (type !== 'payment_settled' || data.log_index === undefined) return [];
  return [transferClaim(data.network as Caip2, data.transaction, data.log_index, data.payment_nonce)];
}

/** `0x` and hex as a `bytea` in the text format. */
function bytes(hex: string): string {
  return String.raw`\\x` + hex.slice(2);
}

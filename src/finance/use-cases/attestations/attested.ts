import type pg from 'pg';
import {
  type Attestation,
  attestationStream,
  isOwedAsAttested,
  openAttestation,
  type Owed,
} from '../../../audit/rules/attestation.ts';
import { findChangedEvents, readPresentHead } from '../../../audit/use-cases/log/changed-events.ts';
import { paymentRowsOf } from '../../../audit/use-cases/projections/read-model.ts';
import { CheckpointError, type NoteVerifier } from '../../../base/values/log/checkpoint.ts';
import { chunksOf } from '../../../base/values/chunks.ts';
import { decodeLeaf, type RecordedEvent } from '../../../ledger/rules/event.ts';
import { readLeavesUpTo, readStreamsUpTo } from '../../../ledger/store/projection.ts';
import { type RowSnapshot, withStoredRows } from '../../../ledger/store/stored-rows.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import { findStreamsThatMayOwe, readDueStreams } from '../../../payments/store/refunds.ts';

/**
 * An attestation that the read models agree with: which refunds were due after its `size` events needs no reading of them. `versions` are
 * those refunds.
 */
export interface Attested extends Attestation {
  readonly versions: Owed;
}

export type AttestedAnswer =
  | { readonly kind: 'attested'; readonly since: Attested }
  /** The verifier has attested nothing that the log covers and the read models have reached. */
  | { readonly kind: 'none' }
  /** After the first `size` events other refunds were due than the read models and the events say. */
  | { readonly kind: 'contradicted'; readonly size: number };

/** The attestation of the most events that this verifier has signed, and whether the refunds that it counts are those of the read models. */
export async function readAttested(pool: pg.Pool, verifier: NoteVerifier): Promise<AttestedAnswer> {
  const { events } = await readStream(pool, attestationStream(verifier.name));
  // not the last one: an older one may have been recorded again
  const newest = events
    .flatMap((event) => attestationIn(event, verifier) ?? [])
    .reduce<Attestation | undefined>((best, one) => (best && best.size >= one.size ? best : one), undefined);
  const head = newest && (await readPresentHead(pool));
  if (!newest || !head || head.size < newest.size) return { kind: 'none' };
  return withStoredRows(pool, async (snapshot) => {
    if (snapshot.seq < newest.size) return { kind: 'none' };
    const versions = await readOwedAt(snapshot, newest.size);
    return isOwedAsAttested(versions, newest)
      ? { kind: 'attested', since: { ...newest, versions } }
      : { kind: 'contradicted', size: newest.size };
  });
}

/** The attestation in an event, if the verifier has signed it. Everything that can append events can record others. */
export function attestationIn(event: RecordedEvent, verifier: NoteVerifier): Attestation | undefined {
  if (event.type !== 'operator_attestation_recorded') return undefined;
  try {
    const attestation = openAttestation(event.data.note, verifier);
    return attestation.size < event.seq ? attestation : undefined;
  } catch (error) {
    if (error instanceof CheckpointError) return undefined;
    throw error;
  }
}

/** What was due after the first `size` events: by the read models for the streams without a later event, by their events for all others. */
async function readOwedAt(snapshot: RowSnapshot, size: number): Promise<Owed> {
  const due = await readDueStreams(snapshot);
  const unchanged = due.filter(({ last_seq: last }) => last <= size);
  const changed = due.filter(({ last_seq: last }) => last > size).map(({ quote_digest: quote }) => quote);
  const mayHaveOwed = await findStreamsThatMayOwe(snapshot, size);
  return new Map([
    ...unchanged.map(({ quote_digest: quote, version }): [string, number] => [quote, version]),
    ...(await foldOwed(snapshot, new Set([...changed, ...mayHaveOwed]), size)),
  ]);
}

/** Streams read in one statement. */
export const streamsAtOnce = 1_000;

/** Which of these streams have a refund due after the first `size` events, with the versions that they had then. */
export async function foldOwed(
  { client }: Pick<RowSnapshot, 'client'>,
  streams: Iterable<string>,
  size: number,
): Promise<Owed> {
  const owed = new Map<string, number>();
  for (const chunk of chunksOf([...streams], streamsAtOnce))
    for (const events of await readStreamsUpTo(client, chunk, size)) {
      const last = events.at(-1);
      if (last && paymentRowsOf(events).payments.some(({ refund_due: why }) => why !== null))
        owed.set(last.stream, last.version);
    }
  return owed;
}

/** Of these streams the events up to `size` that are missing, or not those that the log has sealed: their `seq`. */
export async function findBroken(pool: pg.Pool, streams: Iterable<string>, size: number): Promise<number[]> {
  const broken: number[] = [];
  for (const chunk of chunksOf([...streams], streamsAtOnce))
    broken.push(...(await readCompared(pool, chunk, size)).broken);
  return broken;
}

/**
 * The events of streams up to `last`, compared with the log. `broken`: the `seq` of those that are not the ones that it has sealed, and of the
 * last event of each stream that lacks one.
 */
export async function readCompared(
  pool: pg.Pool,
  wanted: readonly string[],
  last: number,
): Promise<{ readonly streams: RecordedEvent[][]; readonly broken: readonly number[] }> {
  const streams: RecordedEvent[][] = [];
  const leaves = new Map<number, Buffer>();
  const gaps: number[] = [];
  for (const texts of await readLeavesUpTo(pool, wanted, last)) {
    const events = texts.map(decodeLeaf);
    for (const [index, { seq }] of events.entries()) leaves.set(seq, Buffer.from(texts[index] ?? ''));
    if (!isWholeStream(events, undefined)) gaps.push(events.at(-1)?.seq ?? 0);
    streams.push(events);
  }
  return { streams, broken: [...(await findChangedEvents(pool, leaves)), ...gaps] };
}

/**
 * Whether no event of a payment's stream is missing: its versions follow each other, and a stream without an event since an attestation
 * is one of those that it counts. The events themselves are compared with the log by the caller.
 */
export function isWholeStream(
  events: readonly Pick<RecordedEvent, 'stream' | 'seq' | 'version'>[],
  since: Attested | undefined,
): boolean {
  const last = events.at(-1);
  if (!last || events.some(({ version }, at) => version !== at + 1)) return false;
  return !since || last.seq > since.size || since.versions.get(last.stream) === last.version;
}

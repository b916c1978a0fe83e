import type pg from 'pg';
import {
  type Attestation,
  attestationStream,
  openAttestation,
  owedSummary,
  signAttestation,
} from '../../../audit/rules/attestation.ts';
import { isAsSealed, readPresentHead } from '../../../audit/use-cases/log/changed-events.ts';
import { rootFromTiles } from '../../../audit/use-cases/log/prove.ts';
import { checkRows } from '../../../audit/use-cases/verify/rows/check-rows.ts';
import { verifyDatabase } from '../../../audit/use-cases/verify/verify-database.ts';
import {
  type NoteSigner,
  type NoteVerifier,
  openCheckpoint,
  CheckpointError,
  verifierOf,
} from '../../../base/values/log/checkpoint.ts';
import type { LedgerWriter } from '../../../ledger/store/ledger.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import { findStreamsThatMayOwe } from '../../../payments/store/refunds.ts';
import { findUnlistedRefunds } from '../refunds/list-refunds-due.ts';
import { type Attested, attestationIn, findBroken, foldOwed, readAttested } from './attested.ts';

export interface AttestOrder {
  /** The verifier's key, which neither a gateway nor the database has. */
  readonly signer: NoteSigner;
  /** The log's public key; without it the signature of its newest head is not checked. */
  readonly log: NoteVerifier | undefined;
  /** Reads the whole ledger although an earlier attestation allows to read less. */
  readonly isWhole: boolean;
}

export type AttestAnswer =
  | {
      readonly kind: 'signed';
      readonly attestation: Omit<Attestation, 'origin'>;
      readonly note: string;
      /** The size of the attestation that it continues; undefined where the whole ledger was read. */
      readonly since: number | undefined;
    }
  /** There is no head of the log to attest, or none after the last attestation. */
  | { readonly kind: 'nothing_new' }
  /** The ledger is not as it was sealed or attested; the message names the first difference. */
  | { readonly kind: 'not_sound'; readonly words: string };

/**
 * Signs an attestation of the events that the log's newest head covers. The first one reads and verifies everything, as `verify` does; a later
 * one reads what came since, and the refunds that were due. It writes nothing.
 */
export async function attest(pool: pg.Pool, order: AttestOrder): Promise<AttestAnswer> {
  const { signer, log } = order;
  const head = await readPresentHead(pool);
  if (!head || head.size === 0) return { kind: 'nothing_new' };
  try {
    if (log) openCheckpoint(head.note, log);
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    return { kind: 'not_sound', words: `the newest head of the log: ${error.message}` };
  }
  const earlier = order.isWhole ? undefined : await readAttested(pool, verifierOf(signer));
  const since = earlier?.kind === 'attested' ? earlier.since : undefined;
  if (since?.size === head.size) return { kind: 'nothing_new' };
  const { size } = head;
  const mayOwe = await streamsThatMayOwe(pool, size, since);
  const words = since ? await wrongSince(pool, size, since, mayOwe) : await wrongInWhole(pool, log);
  if (words !== undefined) return { kind: 'not_sound', words };
  const owed = await foldOwed({ client: pool }, mayOwe, size);
  const attestation = { size, root: await rootFromTiles(pool, size), owed: owedSummary(owed) };
  return {
    kind: 'signed',
    attestation,
    note: signAttestation(attestation, signer),
    since: since?.size,
  };
}

async function wrongSince(
  pool: pg.Pool,
  size: number,
  since: Attested,
  mayOwe: Iterable<string>,
): Promise<string | undefined> {
  if (!(await isAsSealed(pool, since)))
    return `the events after the first ${since.size} are not those that the log has sealed`;
  const unlisted = await findUnlistedRefunds(pool, since);
  if (unlisted.length > 0)
    return `the read models say something else about the payments that events ${unlisted.join(', ')} started`;
  const broken = await findBroken(pool, mayOwe, size);
  return broken.length > 0
    ? `the events ${broken.join(', ')} are not those that the log has sealed, or others before them are missing`
    : undefined;
}

async function wrongInWhole(pool: pg.Pool, log: NoteVerifier | undefined): Promise<string | undefined> {
  const { fault, isSound } = await verifyDatabase(pool, [], log);
  if (fault) return `event ${fault.seq}: ${fault.words}`;
  if (!isSound) return 'a checkpoint does not hold';
  const [wrong] = await checkRows(pool);
  return wrong && `row of ${wrong.table}: ${wrong.words}`;
}

async function streamsThatMayOwe(
  pool: pg.Pool,
  size: number,
  since: Attested | undefined,
): Promise<ReadonlySet<string>> {
  const changed = await findStreamsThatMayOwe({ client: pool, seq: size }, since?.size);
  return new Set([...(since?.versions.keys() ?? []), ...changed]);
}

export interface RecordedAttestation {
  /** RFC 3339. */
  readonly at: string;
  readonly operator: string;
  readonly size: number;
  /** Undefined where the verifier did not sign it. */
  readonly attestation: Attestation | undefined;
}

/** What is recorded under the name of a verifier, the newest first. */
export async function listAttestations(
  pool: pg.Pool,
  verifier: NoteVerifier,
): Promise<RecordedAttestation[]> {
  const { events } = await readStream(pool, attestationStream(verifier.name));
  return events.toReversed().flatMap((event) => {
    if (event.type !== 'operator_attestation_recorded') return [];
    const { size, operator } = event.data;
    return [{ at: event.at, operator, size, attestation: attestationIn(event, verifier) }];
  });
}

export type RecordAnswer =
  | { readonly kind: 'recorded' | 'repeated'; readonly attestation: Attestation }
  | { readonly kind: 'refused'; readonly words: string };

/**
 * Records a signed attestation as an event, once.
 * @throws CheckpointError if it is none, or the verifier did not sign it
 */
export async function recordAttestation(
  { pool, lane }: LedgerWriter,
  { note, verifier, operator }: { note: string; verifier: NoteVerifier; operator: string },
): Promise<RecordAnswer> {
  const attestation = openAttestation(note, verifier);
  const { size, root } = attestation;
  const head = await readPresentHead(pool);
  if (!head || head.size < size)
    return { kind: 'refused', words: `it is about ${size} events, and the log covers ${head?.size ?? 0}` };
  if (!(await rootFromTiles(pool, size)).equals(root))
    return {
      kind: 'refused',
      words: `it is about another ledger: its root of ${size} events is another one`,
    };
  const stream = attestationStream(verifier.name);
  for (;;) {
    const { events } = await readStream(pool, stream);
    if (events.some(({ data }) => 'note' in data && data.note === note))
      return { kind: 'repeated', attestation };
    const { outcome } = await lane.append({
      stream,
      expect: events.length,
      events: [{ type: 'operator_attestation_recorded', data: { size, note, operator } }],
    });
    if (outcome === 'ok') return { kind: 'recorded', attestation };
  }
}

import { createHash } from 'node:crypto';
import {
  CheckpointError,
  type NoteSigner,
  type NoteVerifier,
  openCheckpoint,
  signCheckpoint,
  type TreeHead,
} from '../../base/values/log/checkpoint.ts';

/**
 * What a verifier attests of the first `size` events: their root, and which refunds were due after them. It is a C2SP checkpoint under the
 * verifier's own name, with one line after the root: `refunds-due COUNT SHA256`.
 */
export interface Attestation extends TreeHead {
  /** The number of payments with a refund due, and their hash: {@link owedSummary}. */
  readonly owed: OwedSummary;
}

/** The stream of a verifier's attestations. A hash: a name may have characters that no stream's name has. */
export function attestationStream(verifierName: string): string {
  return `attestation:${createHash('sha256').update(verifierName).digest('hex').slice(0, 16)}`;
}

export interface OwedSummary {
  readonly count: number;
  /** Base64. */
  readonly sha256: string;
}

/** Payments with a refund due: the version of each quote's stream, which says that none of its events is missing. */
export type Owed = ReadonlyMap<string, number>;

/** SHA-256 over a line for each quote, in the order of their digests: `DIGEST VERSION`. */
export function owedSummary(owed: Owed): OwedSummary {
  const lines = [...owed].map(([digest, version]) => `${digest} ${version}\n`).toSorted();
  return { count: owed.size, sha256: createHash('sha256').update(lines.join('')).digest('base64') };
}

/** Whether these payments are the ones of an attestation. */
export function isOwedAsAttested(owed: Owed, { owed: attested }: Pick<Attestation, 'owed'>): boolean {
  const { count, sha256 } = owedSummary(owed);
  return count === attested.count && sha256 === attested.sha256;
}

const owedLine = /^refunds-due (0|[1-9]\d{0,15}) ([A-Za-z0-9+/]{43}=)$/;

/** The signed note of an attestation: the verifier's name, size, root, refunds due, signature. */
export function signAttestation(
  { size, root, owed }: Omit<Attestation, 'origin'>,
  signer: NoteSigner,
): string {
  const extensions = [`refunds-due ${owed.count} ${owed.sha256}`];
  return signCheckpoint({ origin: signer.name, size, root, extensions }, signer);
}

/**
 * Reads an attestation that the verifier has signed.
 * @throws CheckpointError that names the fault: its form, its verifier, its signature
 */
export function openAttestation(note: string, verifier: NoteVerifier): Attestation {
  const head = openCheckpoint(note, verifier);
  const [line = '', ...more] = head.extensions ?? [];
  const [, count, sha256] = owedLine.exec(line) ?? [];
  if (count === undefined || sha256 === undefined || more.length > 0 || head.size === 0)
    throw new CheckpointError('this checkpoint is not an attestation');
  return { ...head, owed: { count: Number(count), sha256 } };
}

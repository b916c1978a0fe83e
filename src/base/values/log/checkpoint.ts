import { mapSecrets, type RotatingSecret } from '../rotating-secret.ts';
import { createHash, sign, verify } from 'node:crypto';
import { ed25519KeysOf, ed25519PublicKey } from '../ed25519.ts';

/** A tree head: the contents of a C2SP tlog-checkpoint. */
export interface TreeHead {
  readonly origin: string;
  readonly size: number;
  readonly root: Buffer;
  /** The lines after the root; absent where there are none. */
  readonly extensions?: readonly string[];
}

/** The keys that sign notes under a name, Ed25519 as C2SP's signed-note has it: two while one replaces the other. */
export interface NoteSigner {
  readonly name: string;
  /** `name+hash+base64`: the verifier's form of each key; the one in use is the first. */
  readonly verifierKeys: RotatingSecret;
  /** One signature with each key. */
  sign(text: string): readonly Buffer[];
  /** The same keys under another name, which has other verifier keys. */
  renamed(name: string): NoteSigner;
}

/** The public half of one key. */
interface PublicKey {
  readonly keyId: Buffer;
  verify(text: string, signature: Buffer): boolean;
}

/** The public half: a note is accepted when one of the keys has signed it. */
export interface NoteVerifier {
  readonly name: string;
  readonly keys: readonly PublicKey[];
}

/** A text is malformed, or no known key has signed it; the message says which. */
export class CheckpointError extends Error {
  override readonly name = 'CheckpointError';
}

const seedBytes = 32;
const ed25519 = 0x01;
const maxNoteChars = 65_536;

/** Names of keys and logs: no spaces, no plus, nothing that ends a line. */
export const originPattern = /^[!-*,-~]{1,255}$/;

/** A public key as text: the name, the hash of the name and the key, and the key in base64. */
export const verifierKeyPattern = /^([^+\s]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+={0,2})$/;

/** Reads an Ed25519 seed: 32 bytes in hex or base64. Undefined for anything else. */
export function parseSeed(text: string): Buffer | undefined {
  if (/^[0-9a-fA-F]{64}$/.test(text)) return Buffer.from(text, 'hex');
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === seedBytes && bytes.toString('base64') === text ? bytes : undefined;
}

export function noteSigner(name: string, seeds: RotatingSecret<Buffer>): NoteSigner {
  const keys = mapSecrets(seeds, (seed) => signingKey(name, seed));
  return {
    name,
    verifierKeys: mapSecrets(keys, ({ verifierKey }) => verifierKey),
    sign: (text) => keys.map((key) => key.sign(text)),
    renamed: (other) => noteSigner(other, seeds),
  };
}

function signingKey(name: string, seed: Buffer) {
  const { privateKey, publicKey } = ed25519KeysOf(seed);
  const keyId = keyIdOf(name, publicKey);
  const typed = Buffer.concat([Buffer.of(ed25519), publicKey]);
  return {
    verifierKey: `${name}+${keyId.toString('hex')}+${typed.toString('base64')}`,
    sign: (text: string) => Buffer.concat([keyId, sign(null, Buffer.from(text), privateKey)]),
  };
}

/** Accepts a text that one of the signer's keys has signed. */
export function verifierOf({ name, verifierKeys }: NoteSigner): NoteVerifier {
  return { name, keys: verifierKeys.flatMap((key) => parseVerifierKey(key).keys) };
}

/**
 * Reads a verifier key `name+hash+base64`.
 * @throws CheckpointError if it is not one, or where its hash is not that of its name and key
 */
export function parseVerifierKey(text: string): NoteVerifier {
  const match = verifierKeyPattern.exec(text.trim());
  const [, name = '', hash = '', base64 = ''] = match ?? [];
  const bytes = Buffer.from(base64, 'base64');
  if (!match || bytes.length !== 1 + seedBytes || bytes[0] !== ed25519)
    throw new CheckpointError('the public key is not of the form name+hash+base64 with an Ed25519 key');
  const publicKey = bytes.subarray(1);
  const keyId = keyIdOf(name, publicKey);
  if (keyId.toString('hex') !== hash)
    throw new CheckpointError("the public key's hash does not belong to its name and key: it was mistyped");
  const key = ed25519PublicKey(publicKey);
  return {
    name,
    keys: [{ keyId, verify: (note, signature) => verify(null, Buffer.from(note), key, signature) }],
  };
}

/** The checkpoint of a tree head: a note, signed. */
export function signCheckpoint(
  { origin, size, root, extensions = [] }: TreeHead,
  signer: Pick<NoteSigner, 'name' | 'sign'>,
): string {
  const text = [origin, size, root.toString('base64'), ...extensions].map((line) => `${line}\n`).join('');
  const lines = signer.sign(text).map((signature) => `— ${signer.name} ${signature.toString('base64')}\n`);
  return `${text}\n${lines.join('')}`;
}

/**
 * Reads a checkpoint that one of the keys has signed.
 * @throws CheckpointError that names the fault: its form, its log, its signature
 */
export function openCheckpoint(note: string, verifier: NoteVerifier): TreeHead {
  if (note.length > maxNoteChars) throw new CheckpointError('the checkpoint is too long');
  const end = note.lastIndexOf('\n\n');
  // oxlint-disable-next-line no-control-regex -- a note may hold none but the newline
  if (end < 0 || !note.endsWith('\n') || /[\0-\x09\x0b-\x1f]/.test(note))
    throw new CheckpointError('this is not a signed note');
  const text = note.slice(0, end + 1);
  const head = parseHead(text);
  if (head.origin !== verifier.name)
    throw new CheckpointError(`this checkpoint is of the log ${head.origin}, not of ${verifier.name}`);
  const signatures = note
    .slice(end + 2, -1)
    .split('\n')
    .map(parseSignature);
  const own = signatures.flatMap(({ name, bytes }) => {
    const key =
      name === verifier.name && verifier.keys.find(({ keyId }) => bytes.subarray(0, 4).equals(keyId));
    return key ? [key.verify(text, bytes.subarray(4))] : [];
  });
  if (own.length === 0) throw new CheckpointError('the checkpoint is signed by another key');
  if (own.includes(false))
    throw new CheckpointError("the checkpoint's signature does not hold: its text was changed");
  return head;
}

/**
 * Reads a checkpoint without checking its signature: only for the gateway's own.
 * @throws CheckpointError if it is not one
 */
export function readCheckpoint(note: string): TreeHead {
  return parseHead(note.slice(0, note.lastIndexOf('\n\n') + 1));
}

function parseHead(text: string): TreeHead {
  const [origin = '', size = '', base64 = '', ...more] = text.slice(0, -1).split('\n');
  const root = Buffer.from(base64, 'base64');
  const isHead =
    origin !== '' &&
    /^(?:0|[1-9]\d{0,15})$/.test(size) &&
    Number.isSafeInteger(Number(size)) &&
    root.length === 32 &&
    root.toString('base64') === base64 &&
    !more.includes('');
  if (!isHead) throw new CheckpointError('this signed note is not a checkpoint');
  return { origin, size: Number(size), root, ...(more.length > 0 && { extensions: more }) };
}

function parseSignature(line: string): { name: string; bytes: Buffer } {
  const match = /^— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/.exec(line);
  const bytes = Buffer.from(match?.[2] ?? '', 'base64');
  if (!match || bytes.length <= 4) throw new CheckpointError('this is not a signed note');
  return { name: match[1] ?? '', bytes };
}

function keyIdOf(name: string, publicKey: Buffer): Buffer {
  return createHash('sha256')
    .update(name)
    .update(Buffer.of(0x0a, ed25519))
    .update(publicKey)
    .digest()
    .subarray(0, 4);
}

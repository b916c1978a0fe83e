import { access, constants, readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { GivenCheckpoint } from '../verify/verify.ts';
import { reasonOf } from '../config/files.ts';
import { type NoteVerifier, parseVerifierKey } from '../domain/log/checkpoint.ts';
import { ArgumentError } from './network-pairs.ts';

/**
 * A public key: the key itself, or the name of a file that holds it. Throws an ArgumentError where there is no such file,
 * and a CheckpointError where it is no key.
 */
export async function readVerifier(given: string): Promise<NoteVerifier> {
  if (given.split('+').length >= 3) return parseVerifierKey(given);
  return parseVerifierKey(await orNamed(`--pubkey ${given} is no key, and no file`, readFile(given, 'utf8')));
}

/** One checkpoint, or all of a folder that an anchor filled. Throws an ArgumentError where it cannot be read. */
export async function readCheckpoints(place: string): Promise<GivenCheckpoint[]> {
  return orNamed(`--checkpoint ${place} cannot be read`, readPlace(place));
}

async function readPlace(place: string): Promise<GivenCheckpoint[]> {
  if (!(await stat(place)).isDirectory()) return [await readNote(place)];
  const names = (await readdir(place)).filter((name) => /^\d+$/.test(name)).toSorted();
  return Promise.all(names.map((name) => readNote(path.join(place, name))));
}

/** Editors and shells leave empty lines behind, which no signature covers. */
async function readNote(source: string): Promise<GivenCheckpoint> {
  return { source, note: (await readFile(source, 'utf8')).replace(/\n+$/, '\n') };
}

/** Throws an ArgumentError where an export that was named cannot be read. */
export async function requireExport(file: string): Promise<void> {
  await orNamed(`the export ${file} cannot be read`, access(file, constants.R_OK));
}

async function orNamed<T>(words: string, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw new ArgumentError(`${words}: ${reasonOf(error)}`);
  }
}

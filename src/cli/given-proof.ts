import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { GivenCheckpoint } from '../audit/verify.ts';
import { type NoteVerifier, parseVerifierKey } from '../domain/checkpoint.ts';

/** A public key: the key itself, or the name of a file that holds it. Throws a CheckpointError where it is none. */
export async function readVerifier(given: string): Promise<NoteVerifier> {
  return parseVerifierKey(given.split('+').length >= 3 ? given : await readFile(given, 'utf8'));
}

/** One checkpoint, or all of a folder that an anchor filled. */
export async function readCheckpoints(place: string): Promise<GivenCheckpoint[]> {
  if (!(await stat(place)).isDirectory()) return [{ source: place, note: await readFile(place, 'utf8') }];
  const names = (await readdir(place)).filter((name) => /^\d+$/.test(name)).toSorted();
  return Promise.all(
    names.map(async (name) => {
      const source = path.join(place, name);
      return { source, note: await readFile(source, 'utf8') };
    }),
  );
}

import { access, constants, readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import { signerOf } from '../use-cases/log/configured-log.ts';
import type { Config } from '../../base/config/config.ts';
import { currentSigner } from '../use-cases/log/anchors.ts';
import type { GivenCheckpoint } from '../use-cases/verify/verify.ts';
import { reasonOf } from '../../base/config/files.ts';
import { type NoteVerifier, parseVerifierKey, verifierOf } from '../../base/values/log/checkpoint.ts';
import { ArgumentError } from '../../base/terminal/arguments.ts';

/**
 * Reads a public key: the key itself, or the name of a file with it.
 * @throws ArgumentError if there is no such file
 * @throws CheckpointError if it is not a key
 */
export async function readVerifier(given: string): Promise<NoteVerifier> {
  if (given.split('+').length >= 3) return parseVerifierKey(given);
  return parseVerifierKey(
    await orArgumentError(`--pubkey ${given} is neither a key nor a file`, readFile(given, 'utf8')),
  );
}

/** The given key; else that of the configuration under the log's present name, which is known only to the database. */
export async function givenVerifier(
  pubkey: string | undefined,
  config: Config | undefined,
  pool?: pg.Pool,
): Promise<NoteVerifier | undefined> {
  if (pubkey !== undefined) return readVerifier(pubkey);
  if (!config?.log) return undefined;
  const first = signerOf(config.log);
  return verifierOf(pool ? await currentSigner(pool, first) : first);
}

/** Reads one checkpoint, or all checkpoints in the folder of an anchor. Throws an ArgumentError if that fails. */
export async function readCheckpoints(place: string): Promise<GivenCheckpoint[]> {
  return orArgumentError(`--checkpoint ${place} cannot be read`, readPlace(place));
}

async function readPlace(place: string): Promise<GivenCheckpoint[]> {
  if (!(await stat(place)).isDirectory()) return [await readNote(place)];
  const names = (await readdir(place)).filter((name) => /^\d+$/.test(name)).toSorted();
  return Promise.all(names.map((name) => readNote(path.join(place, name))));
}

/** Drops empty lines at the end, which editors and shells add and no signature covers. */
async function readNote(source: string): Promise<GivenCheckpoint> {
  return { source, note: (await readFile(source, 'utf8')).replace(/\n+$/, '\n') };
}

/** Throws an ArgumentError where an export that was named cannot be read, or is empty: the export of a ledger without events is not. */
export async function requireExport(file: string): Promise<void> {
  const words = `the export ${file} cannot be read`;
  await orArgumentError(words, access(file, constants.R_OK));
  const found = await orArgumentError(words, stat(file));
  if (found.isDirectory()) throw new ArgumentError(`${words}: it is a folder`);
  if (found.isFile() && found.size === 0)
    throw new ArgumentError(
      `the export ${file} is empty: it was not written to its end. Export the ledger again`,
    );
}

async function orArgumentError<T>(message: string, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw new ArgumentError(`${message}: ${reasonOf(error)}`);
  }
}

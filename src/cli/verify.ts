import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ExportVerifier, type GivenCheckpoint, verdictLines } from '../audit/verify.ts';
import { verifyFile } from '../audit/verify-file.ts';
import { verifyDatabase } from '../audit/verify-database.ts';
import { CheckpointError, type NoteVerifier, parseVerifierKey } from '../domain/checkpoint.ts';
import { withLedger } from './ledger.ts';
import { fail, say } from './terminal.ts';

/** Verifies an export with nothing but checkpoints and the public key; without an export, the database. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      checkpoint: { type: 'string', multiple: true, default: [] },
      pubkey: { type: 'string' },
    },
  });
  const [file, ...more] = positionals;
  let verifier: NoteVerifier | undefined;
  try {
    if (values.pubkey !== undefined) verifier = parseVerifierKey(await keyText(values.pubkey));
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    fail(error.message);
    return 64;
  }
  if (more.length > 0 || (values.checkpoint.length > 0 && !verifier)) {
    fail('tollbook verify [EXPORT] --checkpoint OLD --checkpoint NEW --pubkey KEY');
    return 64;
  }
  const checkpoints = (await Promise.all(values.checkpoint.map(readCheckpoints))).flat();
  const verdict =
    file === undefined
      ? await withLedger(({ pool }) => verifyDatabase(pool, checkpoints, verifier))
      : await verifyFile(file, new ExportVerifier(checkpoints, verifier));
  for (const line of verdictLines(verdict)) say(line);
  return verdict.isSound ? 0 : 1;
}

/** The key itself, or the name of a file that holds it. */
async function keyText(given: string): Promise<string> {
  return given.split('+').length >= 3 ? given : readFile(given, 'utf8');
}

/** One checkpoint, or all of a folder that an anchor filled. */
async function readCheckpoints(place: string): Promise<GivenCheckpoint[]> {
  if (!(await stat(place)).isDirectory()) return [{ source: place, note: await readFile(place, 'utf8') }];
  const names = (await readdir(place)).filter((name) => /^\d+$/.test(name)).toSorted();
  return Promise.all(
    names.map(async (name) => {
      const source = path.join(place, name);
      return { source, note: await readFile(source, 'utf8') };
    }),
  );
}

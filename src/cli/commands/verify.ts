import { parseArgs } from 'node:util';
import { ExportVerifier, verdictLines } from '../../verify/verify.ts';
import { verifyFile } from '../../verify/verify-file.ts';
import { verifyDatabase } from '../../verify/verify-database.ts';
import { CheckpointError, type NoteVerifier } from '../../domain/log/checkpoint.ts';
import { readCheckpoints, readVerifier, requireExport } from '../given-proof.ts';
import { withLedger } from '../ledger.ts';
import { ArgumentError } from '../arguments.ts';
import { fail, say } from '../terminal.ts';

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
    if (values.pubkey !== undefined) verifier = await readVerifier(values.pubkey);
  } catch (error) {
    if (!(error instanceof CheckpointError)) throw error;
    fail(error.message);
    return 64;
  }
  if (more.length > 0) throw new ArgumentError(`one export, not ${more[0]} as well`);
  if (values.checkpoint.length > 0 && !verifier)
    throw new ArgumentError('without --pubkey a checkpoint proves nothing');
  if (file !== undefined) await requireExport(file);
  const checkpoints = (await Promise.all(values.checkpoint.map(readCheckpoints))).flat();
  const verdict =
    file === undefined
      ? await withLedger(({ pool }) => verifyDatabase(pool, checkpoints, verifier))
      : await verifyFile(file, new ExportVerifier(checkpoints, verifier));
  for (const line of verdictLines(verdict)) say(line);
  return verdict.isSound ? 0 : 1;
}

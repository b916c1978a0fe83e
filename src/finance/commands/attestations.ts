import { writeFile } from 'node:fs/promises';
import { openAttestation } from '../../audit/rules/attestation.ts';
import { readVerifier } from '../../audit/terminal/given-proof.ts';
import { projectToHead } from '../../audit/use-cases/projections/project.ts';
import {
  ArgumentError,
  readGivenFile,
  readOperator,
  readOptions,
  requireWritable,
} from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { finding, notDone, say } from '../../base/terminal/terminal.ts';
import { countOf } from '../../base/values/count-text.ts';
import {
  CheckpointError,
  noteSigner,
  type NoteVerifier,
  originPattern,
  parseSeed,
} from '../../base/values/log/checkpoint.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { bookCommands } from '../terminal/book-descriptions.ts';
import { readAttestedBy } from '../terminal/require-sealed.ts';
import { attest, listAttestations, recordAttestation } from '../use-cases/attestations/attest.ts';

/** Verifies the ledger, or what came since the last attestation of the same key, and signs what it found. */
export async function sign(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(bookCommands['attestations sign'], args);
  const [name = ''] = positionals;
  const { key, out, pubkey, whole: isWhole } = values;
  // the ledger keeps it for ever, so it must not be an e-mail address
  if (!originPattern.test(name) || name.includes('@'))
    throw new ArgumentError(
      'name the verifier: tollbook attestations sign NAME, such as audit.example/tollbook',
    );
  if (key === undefined)
    throw new ArgumentError('--key is missing: the file with the verifier’s secret seed');
  if (out === undefined) throw new ArgumentError('--out is missing: the file of the attestation');
  const seed = parseSeed((await readGivenFile('key', key)).trim());
  if (!seed) throw new ArgumentError(`--key ${key} has no Ed25519 seed: 32 bytes in hex or base64`);
  await requireWritable('out', out);
  const log = pubkey === undefined ? undefined : await readVerifier(pubkey);
  return withLedger(async (ledger) => {
    await projectToHead(ledger);
    const answer = await attest(ledger.pool, { signer: noteSigner(name, [seed]), log, isWhole });
    switch (answer.kind) {
      case 'nothing_new':
        return notDone(
          'there is nothing to attest: the log has no head, or none after the last attestation. No file was written',
        );
      case 'not_sound':
        return finding(
          `${answer.words}. No attestation was written. Find the first difference with \`tollbook verify\``,
        );
      case 'signed': {
        const { size, owed } = answer.attestation;
        await writeFile(out, answer.note);
        const from =
          answer.since === undefined ? 'all of them read' : `read from event ${answer.since + 1} on`;
        say(`${name} attests ${size} events (${from}) with ${countOf(owed.count, 'refund')} due, in ${out}.`);
        say('Record it: `tollbook attestations record`.');
        return exitCodes.done;
      }
    }
  });
}

/** Records an attestation that a verifier has signed. */
export async function record(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(bookCommands['attestations record'], args);
  const { file } = values;
  if (file === undefined) throw new ArgumentError('--file is missing: the attestation');
  const verifier = await requireAttestedBy(values);
  const operator = readOperator(values.by ?? '');
  const note = await readGivenFile('file', file);
  try {
    openAttestation(note, verifier);
  } catch (error) {
    if (error instanceof CheckpointError) return notDone(`${file}: ${error.message}. Nothing was recorded`);
    throw error;
  }
  return withLedger(async (ledger) => {
    const answer = await recordAttestation(ledger, { note, verifier, operator });
    if (answer.kind === 'refused') return finding(`${file}: ${answer.words}. Nothing was recorded`);
    const { size } = answer.attestation;
    say(`${answer.kind === 'recorded' ? 'Recorded' : 'Recorded before'}: ${verifier.name}, ${size} events.`);
    return exitCodes.done;
  });
}

/** Lists the recorded attestations of a verifier, and those under its name that it did not sign. */
export async function list(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(bookCommands['attestations list'], args);
  const verifier = await requireAttestedBy(values);
  return withLedger(async ({ pool }) => {
    const listed = await listAttestations(pool, verifier);
    if (listed.length === 0) say(`No attestation of ${verifier.name} is recorded.`);
    for (const { at, operator, size, attestation } of listed)
      say(
        attestation
          ? `${at}  ${size} events, ${countOf(attestation.owed.count, 'refund')} due, recorded by ${operator}`
          : `${at}  ${size} events, recorded by ${operator}: NOT SIGNED by ${verifier.name}`,
      );
    return listed.some(({ attestation }) => !attestation) ? exitCodes.finding : exitCodes.done;
  });
}

async function requireAttestedBy(given: Parameters<typeof readAttestedBy>[0]): Promise<NoteVerifier> {
  const verifier = await readAttestedBy(given);
  if (!verifier) throw new ArgumentError('--attested-by is missing: the public key of the verifier');
  return verifier;
}

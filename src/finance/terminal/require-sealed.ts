import type pg from 'pg';
import type { LedgerSource } from '../use-cases/books/source.ts';
import type { NoteVerifier } from '../../base/values/log/checkpoint.ts';
import { isAsSealed } from '../../audit/use-cases/log/changed-events.ts';
import { type Sealing, sealingInDatabase, sealingInFile } from '../../audit/use-cases/verify/sealing.ts';
import { ArgumentError } from '../../base/terminal/arguments.ts';
import type { ExitCode } from '../../base/terminal/exit-codes.ts';
import { readCheckpoints, readVerifier } from '../../audit/terminal/given-proof.ts';
import { type Attested, readAttested } from '../use-cases/attestations/attested.ts';
import { fail, finding, notDone } from '../../base/terminal/terminal.ts';

/** What was given of the options that require that events are sealed. */
export interface SealedValues {
  readonly 'require-sealed': boolean;
  readonly checkpoint?: readonly string[] | undefined;
  readonly pubkey?: string | undefined;
  readonly input?: string | undefined;
}

/** Throws an ArgumentError if the options of `--require-sealed` do not fit together. */
export function checkSealedOptions({ input, checkpoint = [], pubkey, ...values }: SealedValues): void {
  const isRequired = values['require-sealed'];
  if (!isRequired && (checkpoint.length > 0 || pubkey !== undefined))
    throw new ArgumentError('--checkpoint and --pubkey go with --require-sealed');
  if (input === undefined && checkpoint.length > 0)
    throw new ArgumentError('--checkpoint goes with --input: the database has its own');
  if (isRequired && input !== undefined && (checkpoint.length === 0 || pubkey === undefined))
    throw new ArgumentError(
      '--require-sealed with --input needs --checkpoint and --pubkey: an export has neither',
    );
}

/**
 * `--require-sealed`: whether a checkpoint covers the first `events` of the ledger that the command reads. Undefined if it does, or need
 * not; else the exit code, after standard error has the reason.
 * @param known the public key, if it is not that of `--pubkey`
 */
export async function refuseUnsealed(
  { 'require-sealed': isRequired, checkpoint = [], pubkey }: SealedValues,
  ledger:
    | { readonly pool: pg.Pool; readonly since?: Pick<Attested, 'size' | 'root'> | undefined }
    | { readonly pool: undefined; readonly source: LedgerSource },
  events: number,
  known?: NoteVerifier,
): Promise<ExitCode | undefined> {
  if (!isRequired) return undefined;
  const verifier = known ?? (pubkey === undefined ? undefined : await readVerifier(pubkey));
  if (ledger.pool)
    return tellSealing(await sealingInDatabase(ledger.pool, events, verifier, ledger.since), events);
  if (!verifier) throw new ArgumentError('a checkpoint is checked with the public key: give --pubkey');
  const checkpoints = (await Promise.all(checkpoint.map(readCheckpoints))).flat();
  return tellSealing(await sealingInFile(ledger.source.leaves(), checkpoints, verifier, events), events);
}

/** `--attested-by`. Throws an ArgumentError if it is neither a key nor a file with one. */
export async function readAttestedBy({
  'attested-by': key,
}: {
  readonly 'attested-by'?: string | undefined;
}): Promise<NoteVerifier | undefined> {
  return key === undefined ? undefined : readVerifier(key);
}

/**
 * The newest attestation of a verifier, with which only what came since has to be read. Undefined without a verifier, and where there is no
 * usable one, after standard error says so: then everything is read.
 */
export async function readSince(
  verifier: NoteVerifier | undefined,
  pool: pg.Pool,
): Promise<Attested | undefined> {
  if (!verifier) return undefined;
  const answer = await readAttested(pool, verifier);
  switch (answer.kind) {
    case 'attested':
      return answer.since;
    case 'none':
      fail(`no attestation of ${verifier.name} is recorded for this ledger: everything is read`);
      return undefined;
    case 'contradicted':
      fail(
        `${verifier.name} attested other refunds due after ${answer.size} events than the database has: everything is read`,
      );
      return undefined;
  }
}

/**
 * For a command that says whom to pay: the exit code if the events are not all those that the log has sealed, after standard error says so.
 * Undefined if they are, and with `--require-sealed`, which compares them as well.
 */
export async function refuseChanged(
  { 'require-sealed': isRequired }: SealedValues,
  pool: pg.Pool,
  since?: Attested,
): Promise<ExitCode | undefined> {
  if (isRequired || (await isAsSealed(pool, since))) return undefined;
  return finding(
    'The events are not all those that the log has sealed: somebody has changed, moved or removed some. Nothing is listed. ' +
      'Pay nothing before `tollbook verify` is sound.',
  );
}

/** Prints why events are not proven; undefined if they are. */
export function tellSealing(sealing: Sealing, events: number): ExitCode | undefined {
  switch (sealing.kind) {
    case 'sealed':
      return undefined;
    case 'changed':
      return finding(`${sealing.words}: stop, and run tollbook verify to find what was changed`);
    case 'not_sealed': {
      const { covered } = sealing;
      return notDone(
        covered === 0
          ? `not sealed: no checkpoint covers the ${events} events that were read. Configure [log], start a gateway, and run the command again`
          : `not sealed: the newest checkpoint covers ${covered} events, and ${events - covered} of the ${events} that were read are not covered. ` +
              'A gateway that runs seals them within seconds: run the command again, or give a newer --checkpoint',
      );
    }
  }
}

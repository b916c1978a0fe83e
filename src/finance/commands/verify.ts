import { coveredEvents, ExportVerifier, verdictLines } from '../../audit/use-cases/verify/verify.ts';
import { type Sealing, sealingInDatabase } from '../../audit/use-cases/verify/sealing.ts';
import { verifyFile } from '../../audit/use-cases/verify/verify-file.ts';
import { verifyDatabase } from '../../audit/use-cases/verify/verify-database.ts';
import { type ReceiptVerdict, verifyReceipt } from '../../audit/use-cases/verify/verify-receipt.ts';
import { checkRows } from '../../audit/use-cases/verify/rows/check-rows.ts';
import { readCheckpoints, readVerifier, requireExport } from '../../audit/terminal/given-proof.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { tellSealing } from '../terminal/require-sealed.ts';
import { ArgumentError, readGivenJson, readOptions } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { finding, notDone, say } from '../../base/terminal/terminal.ts';
import { bookCommands } from '../terminal/book-descriptions.ts';

/**
 * Verifies an export with nothing but checkpoints and the public key; without an export, the database. With `--receipt`, the proofs of one
 * receipt.
 */
export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(bookCommands.verify, args);
  const [file] = positionals;
  const { 'require-sealed': isRequired } = values;
  const verifier = values.pubkey === undefined ? undefined : await readVerifier(values.pubkey);
  if (values.receipt !== undefined) {
    if (!verifier || file !== undefined || values.checkpoint.length > 0)
      throw new ArgumentError('--receipt is checked with --pubkey alone');
    return tellReceipt(verifyReceipt(await readGivenJson('receipt', values.receipt), verifier), isRequired);
  }
  if (values.checkpoint.length > 0 && !verifier)
    throw new ArgumentError('without --pubkey a checkpoint proves nothing');
  if (file !== undefined) await requireExport(file);
  const checkpoints = (await Promise.all(values.checkpoint.map(readCheckpoints))).flat();
  if (file !== undefined) {
    const verdict = await verifyFile(file, new ExportVerifier(checkpoints, verifier));
    for (const line of verdictLines(verdict)) say(line);
    if (!verdict.isSound) return exitCodes.finding;
    if (!isRequired) return exitCodes.done;
    const covered = coveredEvents(verdict);
    const sealing: Sealing =
      covered < verdict.events || covered === 0 ? { kind: 'not_sealed', covered } : { kind: 'sealed' };
    return tellSealing(sealing, verdict.events) ?? exitCodes.done;
  }
  return withLedger(async ({ pool }) => {
    const verdict = await verifyDatabase(pool, checkpoints, verifier);
    const wrongRows = await checkRows(pool);
    for (const line of verdictLines(verdict, wrongRows)) say(line);
    if (!verdict.isSound || wrongRows.length > 0) return exitCodes.finding;
    if (!isRequired) return exitCodes.done;
    const sealing = await sealingInDatabase(pool, verdict.events, verifier);
    return tellSealing(sealing, verdict.events) ?? exitCodes.done;
  });
}

function tellReceipt(verdict: ReceiptVerdict, isRequired: boolean): ExitCode {
  if (verdict.kind === 'not_proven') return finding(`not proven: ${verdict.reason}`);
  const { head, events, payment, pending } = verdict;
  for (const { seq, type } of events) say(`event ${seq} (${type}) is in the log`);
  say(
    `paid: ${payment.amount} atoms of the token ${payment.asset} on ${payment.network} by ${payment.payer}, in transaction ${payment.transaction}`,
  );
  if (pending > 0) say(`${pending} more events are not in it yet`);
  say(`proven: ${head.origin}, ${head.size} events, root ${head.root.toString('base64')}`);
  if (!isRequired || pending === 0) return exitCodes.done;
  return notDone(
    `not sealed: ${pending} events of the receipt are not covered. Fetch the receipt again once its proofs are there`,
  );
}

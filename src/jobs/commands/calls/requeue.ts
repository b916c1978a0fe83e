import { type DeadLetterChoice, maxChanged } from '../../../calls/use-cases/dead-letters.ts';
import { requeueCalls, requeueCall } from '../../../calls/use-cases/requeue-call.ts';
import { ArgumentError, readId, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { readChoice, runBatches } from '../../terminal/dead-letter-choice.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { jobCommands } from '../../terminal/descriptions.ts';

const whySkipped = {
  not_dead: 'is no longer a dead letter',
  refunded: 'its payment was refunded',
  refund_under_way: 'a refund of its payment is being sent',
  unpaid: 'its payment is not settled at present',
} as const;

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(jobCommands['calls requeue'], args);
  const { all, 'dry-run': isDryRun, ...named } = values;
  const choice = readChoice(named);
  if (!all && !isDryRun && !choice) return requeueOne(positionals);
  if (positionals.length > 0 || (choice !== undefined) === all)
    throw new ArgumentError(
      'name one call, or --cause, --service, --job, --reason, --runner, --since, --before, or --all',
    );
  return requeueMany(choice ?? {}, isDryRun);
}

async function requeueOne([text]: readonly string[]): Promise<ExitCode> {
  const expected = 'name the call: tollbook calls requeue CALL_ID, as `tollbook calls dead` shows it';
  const id = readId(text, expected);
  const { kind } = await withLedger((ledger) => requeueCall(ledger, id));
  if (kind === 'requeued') say(`Call ${id} is queued again.`);
  else if (kind === 'refunded')
    fail(`The payment for call ${id} was refunded, so the call is not delivered.`);
  else if (kind === 'refund_under_way')
    fail(`A refund of the payment for call ${id} is being sent, so the call is not delivered.`);
  else if (kind === 'unpaid')
    fail(`The payment for call ${id} is not settled at present, so the call is not delivered.`);
  else fail(`There is no dead-lettered call ${id}.`);
  return kind === 'requeued' ? exitCodes.done : exitCodes.notDone;
}

async function requeueMany(choice: DeadLetterChoice, isDryRun: boolean): Promise<ExitCode> {
  const { done, skipped } = await withLedger((ledger) =>
    runBatches(
      (after) => requeueCalls(ledger, { choice, after, max: maxChanged, isDryRun }),
      (callId, why) => say(`call ${callId} is skipped: ${whySkipped[why]}`),
    ),
  );
  const what = isDryRun ? 'would be queued again; nothing was changed' : 'queued again';
  say(`${done} calls ${what}. ${skipped} skipped.`);
  return exitCodes.done;
}

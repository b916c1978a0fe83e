import { type DeadLetterChoice, maxChanged } from '../../../calls/use-cases/dead-letters.ts';
import { discardCall, type DiscardRecord, discardCalls } from '../../../calls/use-cases/discard-call.ts';
import {
  ArgumentError,
  readId,
  readOperator,
  readOperatorText,
  readOptions,
} from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { readChoice, runBatches } from '../../terminal/dead-letter-choice.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { fail, say } from '../../../base/terminal/terminal.ts';
import { jobCommands } from '../../terminal/descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(jobCommands['calls discard'], args);
  const { all, 'dry-run': isDryRun, count, why: reason, by: name, ...named } = values;
  const choice = readChoice(named);
  const isMany = all || isDryRun || choice !== undefined;
  if (count !== undefined && (!isMany || isDryRun || !/^\d{1,15}$/.test(count)))
    throw new ArgumentError('--count is the number of dead letters that are meant, as --dry-run says it');
  if (isMany && (positionals.length > 0 || (choice !== undefined) === all))
    throw new ArgumentError(
      'name one call, or --cause, --service, --job, --reason, --runner, --since, --before, or --all',
    );
  const id = isMany ? 0 : readId(positionals[0], 'name the call: tollbook calls discard CALL_ID');
  const by = { why: readOperatorText(reason, '--why is your reason'), operator: readOperator(name) };
  return isMany ? discardMany(choice ?? {}, isDryRun, by, count) : discardOne(id, by);
}

async function discardOne(id: number, by: DiscardRecord): Promise<ExitCode> {
  const discarded = await withLedger((ledger) => discardCall(ledger, id, by));
  const { kind } = discarded;
  if (kind === 'discarded' && discarded.isPaid)
    say(`Call ${id} is given up. Its refund is due: see \`tollbook refunds due\`.`);
  else if (kind === 'discarded') say(`Call ${id} is given up. A trigger made it, so no payer paid for it.`);
  else if (kind === 'with_runner')
    fail(
      `A runner has call ${id} under a lease and may still complete it: pause the runner and try again later.`,
    );
  else fail(`There is no call ${id} that waits or is a dead letter.`);
  return kind === 'discarded' ? exitCodes.done : exitCodes.notDone;
}

async function discardMany(
  choice: DeadLetterChoice,
  isDryRun: boolean,
  by: DiscardRecord,
  count: string | undefined,
): Promise<ExitCode> {
  return withLedger(async (ledger) => {
    const discard = (isTried: boolean) =>
      runBatches(
        (after) => discardCalls(ledger, { choice, after, max: maxChanged, isDryRun: isTried, by }),
        (callId) => say(`call ${callId} is skipped: is no longer a dead letter`),
      );
    const meant = await discard(true);
    if (!isDryRun && String(meant.done) !== count) {
      fail(
        `${meant.done} dead letters are meant. Nothing was changed: to give them up, add --count ${meant.done}.`,
      );
      return exitCodes.notDone;
    }
    const { done, skipped } = isDryRun ? meant : await discard(false);
    const what = isDryRun ? 'would be given up; nothing was changed' : 'given up';
    say(`${done} calls ${what}. ${skipped} skipped. See \`tollbook refunds due\`.`);
    return exitCodes.done;
  });
}

import { failureCause } from '../../base/values/failure-cause.ts';
import {
  ArgumentError,
  readId,
  readOperator,
  readOperatorText,
  readOptions,
} from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { fail, say } from '../../base/terminal/terminal.ts';
import { listDeadCalls } from '../../calls/store/calls.ts';
import {
  type CauseReport,
  type DeadLetterChoice,
  groupDeadLetters,
  joinCauses,
  listed,
  maxChanged,
} from '../../calls/use-cases/dead-letters.ts';
import { discardCall, discardCalls, type DiscardRecord } from '../../calls/use-cases/discard-call.ts';
import { notRequeuedTexts, requeueCall, requeueCalls } from '../../calls/use-cases/requeue-call.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { readChoice, runBatches } from '../terminal/dead-letter-choice.ts';
import { jobCommands } from '../terminal/descriptions.ts';

const maxRows = 1_000;

export async function dead(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(jobCommands['calls dead'], args);
  const { 'by-cause': isByCause, ...named } = values;
  const choice = readChoice(named);
  if (isByCause && choice?.cause === undefined) return sayCauses(choice ?? {});
  if (choice)
    throw new ArgumentError(
      'the options --service, --job, --reason, --runner, --since and --before go with --by-cause',
    );
  const calls = await withLedger(({ db }) => listDeadCalls(db, maxRows));
  if (calls.length === 0) say('No call is dead-lettered.');
  for (const call of calls) {
    const { trigger, stream } = call;
    const origin = trigger ? `${trigger.kind} ${trigger.name} ${trigger.id}` : `quote ${stream}`;
    say(
      `call ${call.call_id}  job ${call.service_id}/${call.job_index}  attempts ${call.attempt}  ` +
        `since ${call.due_at.toISOString()}  ${origin}\n` +
        `  ${call.last_reason ?? 'unknown'}  runner ${call.last_runner ?? 'none'}  ` +
        `cause ${failureCause(call.last_reason, call.last_error).key}  ${call.last_error ?? ''}`.trimEnd(),
    );
  }
  return exitCodes.done;
}

async function sayCauses(filter: Parameters<typeof groupDeadLetters>[1]): Promise<ExitCode> {
  const { groups, others } = await withLedger(async ({ db }) => {
    let report: CauseReport = { groups: [], others: 0, next: 0 };
    while (report.next !== undefined)
      report = joinCauses(report, await groupDeadLetters(db, filter, report.next));
    return listed(report);
  });
  if (groups.length === 0) say('No call is dead-lettered.');
  for (const { cause, words, calls, jobs, runners, oldest, newest, exampleCallId } of groups) {
    say(
      `${calls} calls  cause ${cause}\n` +
        `  jobs ${jobs.join(' ')}  runners ${runners.join(' ') || 'none'}  ` +
        `from ${oldest.toISOString()} to ${newest.toISOString()}  such as call ${exampleCallId}\n` +
        `  ${words}`.trimEnd(),
    );
  }
  if (others > 0) say(`${others} calls of other causes, too many to list.`);
  return exitCodes.done;
}

/** Many calls are named by one choice, or by `--all`. */
function checkOneChoice(
  positionals: readonly string[],
  choice: DeadLetterChoice | undefined,
  all: boolean,
): void {
  if (positionals.length > 0 || (choice !== undefined) === all)
    throw new ArgumentError(
      'name one call, or --cause, --service, --job, --reason, --runner, --since, --before, or --all',
    );
}

export async function requeue(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(jobCommands['calls requeue'], args);
  const { all, 'dry-run': isDryRun, ...named } = values;
  const choice = readChoice(named);
  if (!all && !isDryRun && !choice) return requeueOne(positionals);
  checkOneChoice(positionals, choice, all);
  return requeueMany(choice ?? {}, isDryRun);
}

async function requeueOne([text]: readonly string[]): Promise<ExitCode> {
  const expected = 'name the call: tollbook calls requeue CALL_ID, as `tollbook calls dead` shows it';
  const id = readId(text, expected);
  const { kind } = await withLedger((ledger) => requeueCall(ledger, id));
  if (kind === 'requeued') say(`Call ${id} is queued again.`);
  else if (kind === 'not_dead') fail(`There is no dead-lettered call ${id}.`);
  else fail(`Call ${id}: ${notRequeuedTexts[kind]}.`);
  return kind === 'requeued' ? exitCodes.done : exitCodes.notDone;
}

async function requeueMany(choice: DeadLetterChoice, isDryRun: boolean): Promise<ExitCode> {
  const { done, skipped } = await withLedger((ledger) =>
    runBatches(
      (after) => requeueCalls(ledger, { choice, after, max: maxChanged, isDryRun }),
      (callId, why) => say(`call ${callId} is skipped: ${notRequeuedTexts[why]}`),
    ),
  );
  const what = isDryRun ? 'would be queued again; nothing was changed' : 'queued again';
  say(`${done} calls ${what}. ${skipped} skipped.`);
  return exitCodes.done;
}

export async function discard(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(jobCommands['calls discard'], args);
  const { all, 'dry-run': isDryRun, count, why: reason, by: name, ...named } = values;
  const choice = readChoice(named);
  const isMany = all || isDryRun || choice !== undefined;
  if (count !== undefined && (!isMany || isDryRun || !/^\d{1,15}$/.test(count)))
    throw new ArgumentError('--count is the number of dead letters that are meant, as --dry-run says it');
  if (isMany) checkOneChoice(positionals, choice, all);
  const id = isMany ? 0 : readId(positionals[0], 'name the call: tollbook calls discard CALL_ID');
  const by = { why: readOperatorText(reason, '--why is your reason'), operator: readOperator(name) };
  return isMany ? discardMany(choice ?? {}, isDryRun, by, count) : discardOne(id, by);
}

const moneyTexts = {
  none: 'A trigger made it, so no payer paid for it.',
  refund_due: 'Its refund is due: see `tollbook refunds due`.',
  refunded: 'Its payment was refunded.',
} as const;

async function discardOne(id: number, by: DiscardRecord): Promise<ExitCode> {
  const discarded = await withLedger((ledger) => discardCall(ledger, id, by));
  const { kind } = discarded;
  if (kind === 'discarded') say(`Call ${id} is given up. ${moneyTexts[discarded.money]}`);
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
    const giveUp = (isTried: boolean) =>
      runBatches(
        (after) => discardCalls(ledger, { choice, after, max: maxChanged, isDryRun: isTried, by }),
        (callId) => say(`call ${callId} is skipped: ${notRequeuedTexts.not_dead}`),
      );
    const meant = await giveUp(true);
    if (!isDryRun && String(meant.done) !== count) {
      fail(
        `${meant.done} dead letters are meant. Nothing was changed: to give them up, add --count ${meant.done}.`,
      );
      return exitCodes.notDone;
    }
    const { done, skipped } = isDryRun ? meant : await giveUp(false);
    const what = isDryRun ? 'would be given up; nothing was changed' : 'given up';
    say(`${done} calls ${what}. ${skipped} skipped. See \`tollbook refunds due\`.`);
    return exitCodes.done;
  });
}

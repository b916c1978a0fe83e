import { failureCause } from '../../../base/values/failure-cause.ts';
import {
  type CauseReport,
  groupDeadLetters,
  joinCauses,
  listed,
} from '../../../calls/use-cases/dead-letters.ts';
import { listDeadCalls } from '../../../calls/store/calls.ts';
import { ArgumentError, readOptions } from '../../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';
import { readChoice } from '../../terminal/dead-letter-choice.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { say } from '../../../base/terminal/terminal.ts';
import { jobCommands } from '../../terminal/descriptions.ts';

const maxRows = 1_000;

export async function run(args: readonly string[]): Promise<ExitCode> {
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

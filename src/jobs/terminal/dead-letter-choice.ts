import { runnerName } from '../../base/values/runner-name.ts';
import { failureCausePattern } from '../../base/values/failure-cause.ts';
import { parseInstant } from '../../base/values/period.ts';
import type { BatchReport, DeadLetterChoice } from '../../calls/use-cases/dead-letters.ts';
import { ArgumentError } from '../../base/terminal/arguments.ts';
import type { choice } from './descriptions.ts';

type ChoiceValues = { readonly [N in keyof typeof choice]?: string | undefined };

/** The dead letters that the options mean; undefined if none is given. Throws an ArgumentError if one has another form. */
export function readChoice(values: ChoiceValues): DeadLetterChoice | undefined {
  const { service, job, cause, reason, runner, since, before } = values;
  if ([service, job, cause, reason, runner, since, before].every((value) => value === undefined))
    return undefined;
  if (service !== undefined && !/^\d{1,15}$/.test(service))
    throw new ArgumentError('--service is the number of a service');
  const [, jobService, jobIndex] = /^(\d{1,15})\/(\d{1,15})$/.exec(job ?? '') ?? [];
  if (job !== undefined && (jobService === undefined || service !== undefined))
    throw new ArgumentError('--job is SERVICE/JOB, such as 3/0, and stands in place of --service');
  if (cause !== undefined && !failureCausePattern.test(cause))
    throw new ArgumentError('--cause is a cause as `tollbook calls dead --by-cause` shows it');
  if (reason !== undefined && !/^[a-z0-9_]{1,100}$/.test(reason))
    throw new ArgumentError('--reason is a reason as `tollbook calls dead` shows it');
  if (runner !== undefined && !runnerName.test(runner))
    throw new ArgumentError('--runner is the name of a runner, as in the configuration');
  const named = service ?? jobService;
  return {
    serviceId: named === undefined ? undefined : Number(named),
    jobIndex: jobIndex === undefined ? undefined : Number(jobIndex),
    cause,
    reason,
    runner,
    since: timeOf('since', since),
    before: timeOf('before', before),
  };
}

function timeOf(name: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const ms = parseInstant(text);
  if (ms === undefined) throw new ArgumentError(`--${name} is a time, such as 2026-11-20T06:30:00Z`);
  return new Date(ms);
}

/** One batch after the other; returns how many dead letters were changed and skipped. */
export async function runBatches<Why extends string>(
  batch: (after: number) => Promise<BatchReport<Why>>,
  onSkipped: (callId: number, why: Why) => void,
): Promise<{ readonly done: number; readonly skipped: number }> {
  const sum = { done: 0, skipped: 0 };
  for (let after: number | undefined = 0; after !== undefined;) {
    const report: BatchReport<Why> = await batch(after);
    for (const { callId, why } of report.skipped) onSkipped(callId, why);
    sum.done += report.done;
    sum.skipped += report.skipped.length;
    after = report.next;
  }
  return sum;
}

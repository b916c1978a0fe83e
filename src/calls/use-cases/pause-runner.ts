import type { EventData, LedgerEvent } from '../../ledger/rules/event.ts';
import { noteGone } from '../store/calls.ts';
import { readLastEvent } from '../../ledger/store/streams.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';

interface NamedRunner {
  readonly name: string;
}

/** The operator who pauses or resumes a runner; `token_id` is that of the operator's token. */
export type RunnerOperator = Pick<EventData<'operator_runner_resumed'>, 'operator' | 'token_id'>;

type RunnerLedger = Pick<Ledger, 'pool' | 'lane'>;

/** This many different calls, answered with 410 in a row, pause a runner. */
const goneCalls = 3;
/** A 410 counts for this long. */
const goneSecs = 3_600;

/**
 * A runner that answers 410 to several different calls in a row takes no more calls, and is paused. A call counts once for ever, so
 * that one that is delivered again cannot pause its runner again; a completed call, and a change by the operator, begin the count
 * anew.
 * @param completedSecs when this process last saw the runner complete a call, in Unix seconds
 */
export async function countGone(
  context: RunnerLedger & { readonly log: OperatorLog },
  runner: NamedRunner,
  callId: number,
  completedSecs: number,
): Promise<void> {
  const { changedAt } = await readState(context, runner);
  const since = new Date(Math.max(completedSecs * 1_000, changedAt));
  if (
    (await noteGone(context.pool, { runner: runner.name, callId, since, withinSecs: goneSecs })) < goneCalls
  )
    return;
  const data = { runner: runner.name, reason: 'status_410' };
  const { kind } = await change(context, runner, { type: 'operator_runner_paused', data });
  if (kind === 'unchanged') return;
  context.log.error(
    { runner: runner.name, calls: goneCalls },
    'runner paused: it answered 410 to several calls in a row',
  );
}

/** Keeps calls back from a runner, on the operator's word. */
export function pauseRunner(
  context: RunnerLedger,
  { name: runner }: NamedRunner,
  by: RunnerOperator,
): Promise<RunnerChange> {
  const data = { runner, reason: 'operator', ...by };
  return change(context, { name: runner }, { type: 'operator_runner_paused', data });
}

/** Lets calls go to a paused runner again. */
export function resumeRunner(
  context: RunnerLedger,
  { name: runner }: NamedRunner,
  by: RunnerOperator,
): Promise<RunnerChange> {
  return change(context, { name: runner }, { type: 'operator_runner_resumed', data: { runner, ...by } });
}

export async function isRunnerPaused(context: Pick<Ledger, 'pool'>, runner: NamedRunner): Promise<boolean> {
  return (await readState(context, runner)).paused !== undefined;
}

/** The pause of a runner: why, and by which operator; undefined if its calls go to it. */
export async function readPause(
  context: Pick<Ledger, 'pool'>,
  runner: NamedRunner,
): Promise<EventData<'operator_runner_paused'> | undefined> {
  return (await readState(context, runner)).paused?.data;
}

/** The pause that is in force, the version of the runner's stream, and when it changed last, in Unix milliseconds. */
async function readState(context: Pick<Ledger, 'pool'>, runner: NamedRunner) {
  const last = await readLastEvent(context.pool, runnerStream(runner));
  const paused = last?.type === 'operator_runner_paused' ? last : undefined;
  return { paused, version: last?.version ?? 0, changedAt: last ? Date.parse(last.at) : 0 };
}

/** `unchanged`: the runner has this state already, or another process was faster. */
export type RunnerChange = { readonly kind: 'changed' } | { readonly kind: 'unchanged' };

async function change(context: RunnerLedger, runner: NamedRunner, event: LedgerEvent): Promise<RunnerChange> {
  const { paused, version } = await readState(context, runner);
  if ((paused !== undefined) === (event.type === 'operator_runner_paused')) return { kind: 'unchanged' };
  const command = { stream: runnerStream(runner), expect: version, events: [event] };
  const { outcome } = await context.lane.append(command, { urgent: true });
  return { kind: outcome === 'ok' ? 'changed' : 'unchanged' };
}

function runnerStream(runner: NamedRunner): string {
  return `runner:${runner.name}`;
}

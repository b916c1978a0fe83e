import { parseArgs } from 'node:util';
import { parseInstant } from '../../../domain/values/period.ts';
import { maxRequeued, requeueCalls } from '../../../jobs/requeue-calls.ts';
import { requeueCall } from '../../../jobs/requeue-call.ts';
import type { DeadLetterFilter } from '../../../store/calls.ts';
import { ArgumentError, exitCodes, readId } from '../../arguments.ts';
import { withLedger } from '../../ledger.ts';
import { fail, say } from '../../terminal.ts';

const options = {
  all: { type: 'boolean' },
  service: { type: 'string' },
  reason: { type: 'string' },
  runner: { type: 'string' },
  since: { type: 'string' },
  before: { type: 'string' },
  'dry-run': { type: 'boolean' },
} as const;

const whySkipped = {
  not_dead: 'is no dead letter any more',
  refunded: 'its payment was refunded',
  unpaid: 'its payment is not settled at present',
} as const;

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options });
  const { all, 'dry-run': isDryRun = false, ...by } = values;
  const isMany = all === true || isDryRun || Object.values(by).some((value) => value !== undefined);
  if (!isMany) return requeueOne(positionals);
  const named = Object.values(by).some((value) => value !== undefined);
  if (positionals.length > 0 || named === (all === true))
    throw new ArgumentError('name one call, or --service, --reason, --runner, --since, --before, or --all');
  return requeueMany(filterOf(by), isDryRun);
}

function filterOf(by: {
  readonly [N in 'service' | 'reason' | 'runner' | 'since' | 'before']?: string | undefined;
}): DeadLetterFilter {
  const { service, reason, runner, since, before } = by;
  if (service !== undefined && !/^\d{1,15}$/.test(service))
    throw new ArgumentError('--service is the number of a service');
  return {
    serviceId: service === undefined ? undefined : Number(service),
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

async function requeueOne([text, ...more]: readonly string[]): Promise<number> {
  const expected = 'name the call: tollbook calls requeue CALL_ID, as `tollbook calls dead` shows it';
  if (more.length > 0) throw new ArgumentError(expected);
  const id = readId(text, expected);
  const { kind } = await withLedger((ledger) => requeueCall(ledger, id));
  if (kind === 'requeued') say(`Call ${id} is queued again.`);
  else if (kind === 'refunded')
    fail(`The payment for call ${id} was refunded, so the call is not delivered.`);
  else if (kind === 'unpaid')
    fail(`The payment for call ${id} is not settled at present, so the call is not delivered.`);
  else fail(`There is no dead-lettered call ${id}.`);
  return kind === 'requeued' ? exitCodes.done : exitCodes.refused;
}

async function requeueMany(filter: DeadLetterFilter, isDryRun: boolean): Promise<number> {
  const { requeued, skipped } = await withLedger(async (ledger) => {
    const sum = { requeued: 0, skipped: 0 };
    for (let after: number | undefined = 0; after !== undefined;) {
      const report = await requeueCalls(ledger, { filter, after, max: maxRequeued, isDryRun });
      for (const { callId, why } of report.skipped) say(`call ${callId} is skipped: ${whySkipped[why]}`);
      sum.requeued += report.requeued;
      sum.skipped += report.skipped.length;
      after = report.next;
    }
    return sum;
  });
  const done = isDryRun ? 'would be queued again; nothing was changed' : 'queued again';
  say(`${requeued} calls ${done}. ${skipped} skipped.`);
  return exitCodes.done;
}

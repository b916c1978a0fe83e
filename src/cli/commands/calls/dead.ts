import { listDeadCalls } from '../../../store/calls.ts';
import { withLedger } from '../../ledger.ts';
import { say } from '../../terminal.ts';

const maxRows = 1_000;

export async function run(): Promise<number> {
  const calls = await withLedger(({ db }) => listDeadCalls(db, maxRows));
  if (calls.length === 0) say('No call is dead-lettered.');
  for (const call of calls) {
    say(
      `call ${call.call_id}  job ${call.service_id}/${call.job_index}  attempts ${call.attempt}  ` +
        `since ${call.due_at.toISOString()}  quote ${call.stream}\n` +
        `  ${call.last_reason ?? 'unknown'}  runner ${call.last_runner ?? 'none'}  ${call.last_error ?? ''}`.trimEnd(),
    );
  }
  return 0;
}

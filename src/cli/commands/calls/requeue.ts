import { requeueCall } from '../../../jobs/requeue-call.ts';
import { readId } from '../../arguments.ts';
import { withLedger } from '../../ledger.ts';
import { fail, say } from '../../terminal.ts';

export async function run([text]: readonly string[]): Promise<number> {
  const id = readId(text, 'name the call: tollbook calls requeue CALL_ID, as `tollbook calls dead` shows it');
  const { kind } = await withLedger((ledger) => requeueCall(ledger, id));
  if (kind === 'requeued') say(`Call ${id} is queued again.`);
  else if (kind === 'refunded')
    fail(`The payment for call ${id} was refunded, so the call is not delivered.`);
  else if (kind === 'unpaid')
    fail(`The payment for call ${id} is not settled at present, so the call is not delivered.`);
  else fail(`There is no dead-lettered call ${id}.`);
  return kind === 'requeued' ? 0 : 1;
}

import { requeueCall } from '../../../jobs/requeue-call.ts';
import { withLedger } from '../../ledger.ts';
import { fail, say } from '../../terminal.ts';

export async function run([id = '']: readonly string[]): Promise<number> {
  if (!/^[1-9]\d{0,15}$/.test(id)) {
    fail('which call? tollbook calls requeue CALL_ID');
    return 64;
  }
  const done = await withLedger((ledger) => requeueCall(ledger, Number(id)));
  if (done === 'done') say(`Call ${id} is queued again.`);
  else if (done === 'refunded') fail(`The payment for call ${id} was refunded: nobody pays for it any more.`);
  else fail(`There is no dead-lettered call ${id}.`);
  return done === 'done' ? 0 : 1;
}

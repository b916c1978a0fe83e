import { listTroubledPayouts } from '../store/payouts.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { say } from '../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';

const maxRows = 1_000;

export async function run(): Promise<ExitCode> {
  await withLedger(async ({ pool }) => {
    const spends = await listTroubledPayouts(pool, maxRows);
    if (spends.length === 0) say('Every earned spend is paid out, or will be on time.');
    for (const { stream, status, attempts, reason, since } of spends) {
      const { events } = await readStream(pool, stream);
      const accepted = events.find((event) => event.type === 'spend_accepted');
      say(`${stream}  ${status === 'failed' ? 'lost' : 'retried'}  ${reason ?? ''}`);
      say(`  earned ${since.toISOString()}, ${attempts} attempts`);
      if (!accepted) continue;
      const { amount, network, contract, commitment, nonce, auth_hash: hash, expiry } = accepted.data;
      say(`  ${amount} atoms by ${contract} on ${network}, until ${expiry}`);
      say(`  account ${commitment}, nonce ${nonce}, authorization ${hash}`);
    }
  });
  return exitCodes.done;
}

import { creditText } from '../../../base/values/price.ts';
import { listAccounts } from '../../store/credit.ts';
import { withLedger } from '../../../ledger/terminal/ledger.ts';
import { say } from '../../../base/terminal/terminal.ts';
import { type ExitCode, exitCodes } from '../../../base/terminal/exit-codes.ts';

export async function run(): Promise<ExitCode> {
  const accounts = await withLedger(({ db }) => listAccounts(db));
  if (accounts.length === 0) say('There are no accounts.');
  for (const { name, balanceMicros, heldMicros, usedMicros } of accounts) {
    const [balance, held, used] = [balanceMicros, heldMicros, usedMicros].map((micros) =>
      creditText(BigInt(micros)),
    );
    say(`${name.padEnd(24)}  balance ${balance}  held ${held}  used ${used}`);
  }
  return exitCodes.done;
}

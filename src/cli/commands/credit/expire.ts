import { expireCredit } from '../../../credit/credit.ts';
import { moveCredit } from '../../credit-move.ts';
import type { ExitCode } from '../../exit-codes.ts';

export function run(args: readonly string[]): Promise<ExitCode> {
  return moveCredit(
    'expire',
    args,
    expireCredit,
    'Nothing was expired: the account has less credit that is not held.',
  );
}

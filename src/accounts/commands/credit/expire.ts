import { expireCredit } from '../../use-cases/credit/credit.ts';
import { moveCredit } from '../../terminal/credit-move.ts';
import type { ExitCode } from '../../../base/terminal/exit-codes.ts';

export function run(args: readonly string[]): Promise<ExitCode> {
  return moveCredit(
    'expire',
    args,
    expireCredit,
    'Nothing was expired: the account has less credit that is not held.',
  );
}

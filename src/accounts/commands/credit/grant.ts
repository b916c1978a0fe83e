import { grantCredit } from '../../use-cases/credit/credit.ts';
import { moveCredit } from '../../terminal/credit-move.ts';
import type { ExitCode } from '../../../base/terminal/exit-codes.ts';

export function run(args: readonly string[]): Promise<ExitCode> {
  return moveCredit(
    'grant',
    args,
    grantCredit,
    'Nothing was granted: the balance would be above the maximum.',
  );
}

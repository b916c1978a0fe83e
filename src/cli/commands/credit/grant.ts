import { grantCredit } from '../../../credit/credit.ts';
import { moveCredit } from '../../credit-move.ts';
import type { ExitCode } from '../../exit-codes.ts';

export function run(args: readonly string[]): Promise<ExitCode> {
  return moveCredit(
    'grant',
    args,
    grantCredit,
    'Nothing was granted: the balance would be above the maximum.',
  );
}

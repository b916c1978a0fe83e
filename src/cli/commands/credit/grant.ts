import { grantCredit } from '../../../credit/credit.ts';
import { moveCredit } from '../../credit-move.ts';

export function run(args: readonly string[]): Promise<number> {
  return moveCredit(
    'grant',
    args,
    grantCredit,
    'Nothing was granted: the balance would be above the maximum.',
  );
}

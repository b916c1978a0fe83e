import { expireCredit } from '../../../credit/credit.ts';
import { moveCredit } from '../../credit-move.ts';

export function run(args: readonly string[]): Promise<number> {
  return moveCredit(
    'expire',
    args,
    expireCredit,
    'Nothing was taken: that is more than it has, without what is held.',
  );
}

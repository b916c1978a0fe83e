import { grantCredit } from '../../../credit/credit.ts';
import { moveCredit } from '../../credit-move.ts';

export function run(args: readonly string[]): Promise<number> {
  return moveCredit('grant', args, grantCredit, 'An account cannot have so much.');
}

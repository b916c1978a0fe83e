import { payOutSpend } from '../spend/pay-out-spend.ts';
import type { ChatContext } from '../chat/context.ts';
import type { Spending } from '../spend/spend.ts';
import { collectSpends, type DueSpend, takeSpends } from '../store/spend.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 1_000;
const eventsAtOnce = 1_000;
const spendsAtOnce = 16;
/** Longer than one look at a spend can take: two transactions, and the questions before them. */
const leaseSecs = 180;

/** Follows the ledger and has every earned spend paid to its operator, in whichever process comes first. */
export function startSpendPayouts(
  context: Pick<ChatContext, 'pool' | 'lane' | 'log'>,
  spending: Spending,
): Loop {
  const claim = async (due: DueSpend): Promise<void> => {
    try {
      await payOutSpend(context, spending, due);
    } catch (error) {
      // it is due again by itself
      context.log.error({ err: error, stream: due.stream }, 'a spend could not be looked after');
    }
  };
  return startLoop(
    async () => {
      const read = await collectSpends(context.pool, eventsAtOnce);
      const spends = await takeSpends(context.pool, spendsAtOnce, leaseSecs);
      await Promise.all(spends.map(claim));
      return read === eventsAtOnce || spends.length === spendsAtOnce;
    },
    { pollMs, log: context.log, failureMessage: 'earned spends could not be read' },
  );
}

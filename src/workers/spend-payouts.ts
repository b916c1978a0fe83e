import type { SpendContext } from '../spend/context.ts';
import { payOutSpend } from '../spend/pay-out-spend.ts';
import { collectPayouts, type DuePayout, takePayouts } from '../store/payouts.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 1_000;
const eventsPerRound = 1_000;
const spendsPerRound = 16;
/** Longer than one attempt can take: two transactions, and the calls before them. */
const leaseSecs = 180;

/** Follows the ledger and has every earned spend paid out to its operator, by one process at a time. */
export function startSpendPayouts(context: SpendContext): Loop {
  const { pool, log } = context;
  const payOut = async (due: DuePayout): Promise<void> => {
    try {
      await payOutSpend(context, due);
    } catch (error) {
      // the spend is due again when its lease expires
      log.error({ err: error, stream: due.stream }, 'the payout of a spend failed: it is tried again');
    }
  };
  return startLoop(
    async () => {
      const read = await collectPayouts(pool, eventsPerRound);
      const spends = await takePayouts(pool, spendsPerRound, leaseSecs);
      await Promise.all(spends.map(payOut));
      return read === eventsPerRound || spends.length === spendsPerRound;
    },
    { pollMs, log, failureMessage: 'earned spends could not be read' },
  );
}

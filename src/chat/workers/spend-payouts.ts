import type { SpendContext } from '../use-cases/context.ts';
import { followPayout } from '../use-cases/spend/follow-payout.ts';
import { payOutSpend } from '../use-cases/spend/pay-out-spend.ts';
import { collectPayouts, type NewPayout, takeNewPayouts, takeSentPayouts } from '../store/payouts.ts';
import { createPromiseTracker } from '../../base/runtime/promise-tracker.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 1_000;
const eventsPerRound = 1_000;
/** Of each queue. */
const atOnce = 16;
/** Longer than one attempt can take: some calls to a node, each with a time limit. */
const leaseSecs = 180;

/**
 * Follows the ledger and has every earned spend paid out to its operator, by one process at a time. Payouts whose transaction
 * was sent wait for it in a separate queue, so that they delay no new one.
 */
export function startSpendPayouts(context: SpendContext): Loop {
  const { pool } = context;
  let isBehind = false;
  const sending = startQueue(
    context,
    async (max) => {
      isBehind = (await collectPayouts(pool, eventsPerRound)) === eventsPerRound;
      return takeNewPayouts(pool, max, leaseSecs);
    },
    (due) => payOutSpend(context, due),
    () => isBehind,
  );
  const following = startQueue(
    context,
    (max) => takeSentPayouts(pool, max, leaseSecs),
    (due) => followPayout(context, due),
  );
  return {
    wake() {
      sending.wake();
      following.wake();
    },
    stop: async () => void (await Promise.all([sending.stop(), following.stop()])),
  };
}

/** Works on due payouts, each as soon as there is room for it, so that a slow one delays only itself. */
function startQueue<Due extends NewPayout>(
  { log }: SpendContext,
  take: (max: number) => Promise<readonly Due[]>,
  attempt: (due: Due) => Promise<void>,
  isMore: () => boolean = () => false,
): Loop {
  const running = createPromiseTracker();
  const attemptGuarded = async (due: Due): Promise<void> => {
    try {
      await attempt(due);
    } catch (error) {
      // the spend is due again when its lease expires
      log.error({ err: error, stream: due.stream }, 'the payout of a spend failed: it is tried again');
    }
  };
  const step = async (): Promise<boolean> => {
    const free = atOnce - running.size;
    if (free <= 0) return false;
    for (const due of await take(free)) void running.add(attemptGuarded(due)).then(() => loop.wake());
    return isMore();
  };
  const loop = startLoop(step, {
    pollMs,
    log,
    failureMessage: 'due payouts could not be read',
    onStopped: () => running.drained(),
  });
  return loop;
}

const balanceMs = 30_000;

/** Refreshes whether the operator's key has ether enough for its transactions, and logs each change of that once. */
export function startOperatorBalanceChecker({ log, operatorBalance, prepaid }: SpendContext): Loop {
  const { operator } = prepaid;
  return startLoop(
    async () => {
      if (!(await operatorBalance.refresh())) return;
      if (operatorBalance.isLow())
        log.warn({ operator }, 'the operator has too little ether to land and pay out spends');
      else log.info({ operator }, 'the operator has ether again to land and pay out spends');
    },
    { pollMs: balanceMs, log, failureMessage: "the operator's ether balance could not be read" },
  );
}

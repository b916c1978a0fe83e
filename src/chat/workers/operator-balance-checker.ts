import type { SpendContext } from '../use-cases/spend/context.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 30_000;

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
    { pollMs, log, failureMessage: "the operator's ether balance could not be read" },
  );
}

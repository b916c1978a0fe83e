import type { ChatContext } from '../chat/context.ts';
import type { Spending } from '../spend/spend.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 30_000;

/** Keeps what is known of the operator's ether up to date, and says once that it runs out. */
export function startOperatorBalanceChecker(
  { log }: Pick<ChatContext, 'log'>,
  { operatorBalance, prepaid }: Spending,
): Loop {
  const { operator } = prepaid;
  return startLoop(
    async () => {
      if (!(await operatorBalance.refresh())) return;
      if (operatorBalance.isLow())
        log.warn({ operator }, 'the operator has too little ether to land and claim spends');
      else log.info({ operator }, 'the operator has ether again to land and claim spends');
    },
    { pollMs, log, failureMessage: "the operator's ether balance could not be read" },
  );
}

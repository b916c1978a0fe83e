import type { PrepaidContract } from '../peers/prepaid/prepaid-contract.ts';

/** Whether the operator's key had ether enough, at the last refresh, to land and pay out spends. */
export interface OperatorBalance {
  isLow(): boolean;
  /** Reads the balance from the chain. True when `isLow` has changed; an unreachable chain changes nothing. */
  refresh(): Promise<boolean>;
}

/** The balance is low when it covers fewer spends than this. */
const spendsAhead = 10n;

export function createOperatorBalance(prepaid: Pick<PrepaidContract, 'funds'>): OperatorBalance {
  let isLow = false;
  return {
    isLow: () => isLow,
    async refresh() {
      const answer = await prepaid.funds();
      if (answer.kind === 'unavailable') return false;
      const { balanceWei, costWei } = answer.value;
      const wasLow = isLow;
      isLow = balanceWei < costWei * spendsAhead;
      return isLow !== wasLow;
    },
  };
}

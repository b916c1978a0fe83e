import type { PrepaidContract } from '../peers/prepaid/prepaid-contract.ts';

/** Whether the key that lands and claims spends can pay for that, as far as was seen at the last look. */
export interface OperatorBalance {
  isLow(): boolean;
  /** Asks the chain. True where that has changed what is known; a chain that cannot be asked changes nothing. */
  refresh(): Promise<boolean>;
}

/** How many spends there has to be ether for. */
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

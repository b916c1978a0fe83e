import type { Funds } from '../../../payments/peers/chain/transaction-sender.ts';
import type { PrepaidContract } from '../../peers/prepaid/prepaid-contract.ts';
import type { AlertCondition } from '../../../base/values/alert-condition.ts';

/** Whether the operator's key had ether enough, at the last refresh, to land and pay out spends. */
export interface OperatorBalance {
  isLow(): boolean;
  /** At the last refresh that the chain answered; undefined before it. */
  funds(): Funds | undefined;
  /** Reads the balance from the chain. True when `isLow` has changed; an unreachable chain changes nothing. */
  refresh(): Promise<boolean>;
}

/** The balance is low when it covers fewer spends than this. */
const spendsAhead = 10n;

export function createOperatorBalance(prepaid: Pick<PrepaidContract, 'funds'>): OperatorBalance {
  let isLow = false;
  let funds: Funds | undefined;
  return {
    isLow: () => isLow,
    funds: () => funds,
    async refresh() {
      const answer = await prepaid.funds();
      if (answer.kind === 'unavailable') return false;
      funds = answer.value;
      const { balanceWei, costWei } = funds;
      const wasLow = isLow;
      isLow = balanceWei < costWei * spendsAhead;
      return isLow !== wasLow;
    },
  };
}

/** What the operator is alerted about in spends now. */
export function spendConditions({
  operatorBalance,
  prepaid,
}: {
  readonly operatorBalance: OperatorBalance;
  readonly prepaid: Pick<PrepaidContract, 'operator'>;
}): AlertCondition[] {
  if (!operatorBalance.isLow()) return [];
  const text = `The operator's key ${prepaid.operator} has too little ether to land and pay out spends: they are refused or wait.`;
  return [{ kind: 'low_gas', subject: `operator ${prepaid.operator}`, text }];
}

import type { EventData } from '../../../ledger/rules/event.ts';
import { accounts, chainAccount } from './account.ts';
import type { Category, Commodity } from '../../../base/values/entry.ts';
import type { Position } from './payment.ts';

type Recorded = EventData<'operator_transfer_recorded'>;

/** The record of a transfer, and its position in the books since. */
export interface UnexplainedTransfer {
  readonly data: Recorded;
  readonly position: Position;
}

export const unexplainedTransferCategories = {
  suspense: 'suspense',
  income: 'suspense_income',
  returned: 'suspense_return',
  own: 'own_transfer',
} as const satisfies Record<Recorded['as'], Category>;

/**
 * The position of an unexplained transfer in the books: the amount received, and its owner. `holding` is the account for tokens at
 * an address of the operator. Undefined: nothing is recorded of it.
 */
export function unexplainedTransferPosition(
  data: Recorded | undefined,
  token: Commodity,
  holding: (address: string) => string,
): Position {
  const position = new Map<string, bigint>();
  if (!data) return position;
  const atoms = BigInt(data.amount);
  const source = sourceOf(data, holding);
  const chain = chainAccount(token, data.pay_to);
  // from a payee to itself, or back from where it came: nothing has moved
  if (source === chain) return position;
  return position.set(chain, atoms).set(source, -atoms);
}

/** The account on the credit side. */
function sourceOf(data: Recorded, holding: (address: string) => string): string {
  switch (data.as) {
    case 'suspense':
      return accounts.suspense;
    case 'income':
      return accounts.unattributed;
    case 'returned':
      return holding(data.returned?.from ?? data.pay_to);
    case 'own':
      return holding(data.received_from);
  }
}

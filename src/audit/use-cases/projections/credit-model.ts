import {
  type CreditBalance,
  foldCredit,
  noCredit,
  postingOf,
} from '../../../accounts/rules/credit/postings.ts';
import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import type { AccountCredit } from '../../../ledger/store/account-credit.ts';

/** How these events change the credit of each account that they name. */
export function accountCreditOf(events: readonly RecordedEvent[]): AccountCredit[] {
  const balances = foldCredit(events);
  const names = new Map<number, string>();
  const last = new Map<number, number>();
  for (const event of events) {
    if (event.type === 'credit_account_opened') names.set(event.data.account_id, event.data.name);
    const id = event.type === 'credit_account_opened' ? event.data.account_id : postingOf(event)?.accountId;
    if (id !== undefined) last.set(id, event.seq);
  }
  return [...last]
    .toSorted(([a], [b]) => a - b)
    .map(([id, seq]) => ({
      account_id: id,
      name: names.get(id) ?? null,
      ...totalsOf(balances.get(id) ?? noCredit),
      last_seq: seq,
    }));
}

/** Credit from outside is negative in the books and positive in the read model. */
function totalsOf({ available, held, granted, bought, used, expired }: CreditBalance) {
  return {
    balance: String(available),
    held: String(held),
    granted: String(-granted),
    topped_up: String(-bought),
    captured: String(used),
    expired: String(expired),
  };
}

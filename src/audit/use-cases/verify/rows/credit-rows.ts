import { topUpId, reversalId } from '../../../../accounts/rules/credit/top-up.ts';
import type { EventData, RecordedEvent } from '../../../../ledger/rules/event.ts';
import { accountCreditOf } from '../../projections/read-model.ts';
import type { AccountCredit } from '../../../../ledger/store/projection.ts';
import type { ExpectedRow } from '../../../../ledger/store/stored-rows.ts';

/** The credit of every account, folded from the events in order. */
export class CreditRows {
  readonly #seq: number;
  readonly #atCursor = new Map<number, AccountCredit>();
  readonly #atHead = new Map<number, AccountCredit>();
  readonly #requests: ExpectedRow[] = [];
  /** How much of the payments of calls was reversed so far. */
  readonly #reversedAtoms = new Map<number, bigint>();

  /** @param seq the cursor of the read models */
  constructor(seq: number) {
    this.#seq = seq;
  }

  /** Takes the next events that move credit. */
  apply(events: readonly RecordedEvent[]): void {
    addTo(
      this.#atCursor,
      events.filter(({ seq }) => seq <= this.#seq),
    );
    let done = 0;
    for (const [index, event] of events.entries()) {
      if (event.type !== 'credit_topped_up' && event.type !== 'credit_reversed') continue;
      addTo(this.#atHead, events.slice(done, index + 1));
      done = index + 1;
      const { account_id, amount_micros: amount, call_id } = event.data;
      this.#requests.push({
        request_id: event.type === 'credit_topped_up' ? topUpId(call_id) : this.#reversalId(event.data),
        op: event.type === 'credit_topped_up' ? 'top_up' : 'expire',
        account_id,
        amount,
        balance: this.#atHead.get(account_id)?.balance ?? null,
      });
    }
    addTo(this.#atHead, events.slice(done));
  }

  #reversalId({ call_id, atoms = '0' }: EventData<'credit_reversed'>): string {
    const before = this.#reversedAtoms.get(call_id) ?? 0n;
    this.#reversedAtoms.set(call_id, before + BigInt(atoms));
    return reversalId(call_id, before);
  }

  /** Rows of the read model, up to its cursor. */
  readModel(): ExpectedRow[] {
    return [...this.#atCursor.values()].map((row) => ({ ...row }));
  }

  /** Rows of `tollbook.account`, at the ledger's end. */
  accounts(): (ExpectedRow & { readonly account_id: number })[] {
    return [...this.#atHead.values()].map(({ account_id, name, balance, held, captured: used }) => ({
      account_id,
      name,
      balance,
      held,
      used,
    }));
  }

  /** Rows of `tollbook.credit_request`: of credit that was bought, and of its reversal. */
  requests(): readonly ExpectedRow[] {
    return this.#requests;
  }
}

function addTo(accounts: Map<number, AccountCredit>, events: readonly RecordedEvent[]): void {
  if (events.length === 0) return;
  for (const more of accountCreditOf(events)) {
    const known = accounts.get(more.account_id);
    accounts.set(more.account_id, known ? added(known, more) : more);
  }
}

function added(known: AccountCredit, more: AccountCredit): AccountCredit {
  const sum = (name: 'balance' | 'held' | 'granted' | 'topped_up' | 'captured' | 'expired'): string =>
    String(BigInt(known[name]) + BigInt(more[name]));
  return {
    account_id: known.account_id,
    name: known.name ?? more.name,
    balance: sum('balance'),
    held: sum('held'),
    granted: sum('granted'),
    topped_up: sum('topped_up'),
    captured: sum('captured'),
    expired: sum('expired'),
    last_seq: more.last_seq,
  };
}

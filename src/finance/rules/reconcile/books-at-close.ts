import {
  chainAccount,
  treasuryAccount,
  unconfirmedAccount,
} from '../../../audit/rules/bookkeeping/account.ts';
import type { BooksState } from '../../../audit/rules/bookkeeping/books-state.ts';
import { Bookkeeper } from '../../../audit/rules/bookkeeping/bookkeeper.ts';
import { BooksError } from '../../../audit/rules/bookkeeping/books-error.ts';
import { type Balance, Balances } from '../../../base/values/entry.ts';
import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import type { Account, PeriodOfTime } from './reconcile.ts';

/** What the books have of one token at one payee at the end of a period, in atoms. */
export interface BookedBalance {
  readonly chain: bigint;
  /** Paid by the report of a facilitator alone. */
  readonly unconfirmed: bigint;
  /** From before the address was a payee. */
  readonly treasury: bigint;
}

/**
 * The books of a ledger up to the end of a period, as its export has them: by the time of recording. Only money on chains: events
 * of credit need not be given.
 */
export class BooksAtClose {
  readonly #bookkeeper: Bookkeeper;
  readonly #balances = new Balances();
  readonly #to: string;
  #isUnreadable = false;

  /** @param known tokens and payees of the whole ledger, if only some of its streams are given; it is changed */
  constructor({ to }: Pick<PeriodOfTime, 'to'>, isReopened: (digest: string) => boolean, known?: BooksState) {
    this.#to = to;
    this.#bookkeeper = new Bookkeeper(isReopened, undefined, known);
  }

  /** Takes the next event. */
  take(event: RecordedEvent): void {
    if (this.#isUnreadable || event.at >= this.#to) return;
    try {
      for (const move of this.#bookkeeper.post(event)?.moves ?? []) this.#balances.post(move);
    } catch (error) {
      if (!(error instanceof BooksError)) throw error;
      // this ledger has no books; the verifier names the event
      this.#isUnreadable = true;
    }
  }

  /** Undefined if the events contradict each other, so that there are no books. */
  of(account: Account): BookedBalance | undefined {
    return this.#isUnreadable ? undefined : bookedOn(account, this.#balances.list());
  }
}

/** What the accounts of a token at a payee have. */
export function bookedOn(
  { network, asset, payTo }: Account,
  balances: Iterable<Pick<Balance, 'account' | 'commodity' | 'atoms'>>,
): BookedBalance {
  let [chain, unconfirmed, treasury] = [0n, 0n, 0n];
  for (const { account, commodity, atoms } of balances) {
    if (commodity.network !== network || commodity.asset !== asset) continue;
    if (account === chainAccount(commodity, payTo)) chain += atoms;
    if (account === unconfirmedAccount(commodity, payTo)) unconfirmed += atoms;
    if (account === treasuryAccount(commodity, payTo)) treasury += atoms;
  }
  return { chain, unconfirmed, treasury };
}

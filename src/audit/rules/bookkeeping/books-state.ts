import { CreditOrder } from '../../../accounts/rules/credit/credit-parts.ts';
import { chainAccount, treasuryAccount } from './account.ts';
import { Commodities } from './commodity.ts';
import type { Commodity } from '../../../base/values/entry.ts';

/** What the books know besides quotes, transfers and completions: it grows with tokens, payees and accounts of credit alone. */
export interface BooksState {
  readonly commodities: Commodities;
  readonly payees: Payees;
  readonly credit: CreditOrder;
}

/** Before the first event. */
export function noBooks(): BooksState {
  return { commodities: new Commodities(), payees: new Payees(), credit: new CreditOrder() };
}

/** The addresses that received payments, each with the `seq` of its first event: an address may become a payee later. */
export class Payees {
  readonly #since: Map<string, number>;

  /** @param known those of earlier events, as of {@link list} */
  constructor(known: Iterable<readonly [payee: string, seq: number]> = []) {
    this.#since = new Map(known);
  }

  /** By `network/address`. */
  list(): Iterable<readonly [payee: string, seq: number]> {
    return this.#since;
  }

  note(seq: number, { network, pay_to }: { readonly network: string; readonly pay_to: string }): void {
    const payee = `${network}/${pay_to}`;
    if (!this.#since.has(payee)) this.#since.set(payee, seq);
  }

  /** The account for tokens at an address of the operator, at the time of an event. */
  holding(token: Commodity, address: string, seq: number): string {
    const since = this.#since.get(`${token.network}/${address}`) ?? Infinity;
    return since <= seq ? chainAccount(token, address) : treasuryAccount(token, address);
  }
}

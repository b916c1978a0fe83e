import { Balances, type Balance, type Commodity, type Entry, type Move } from '../../../base/values/entry.ts';
import { customerOf } from '../../../audit/rules/bookkeeping/tax.ts';

/** A change of what the operator owes a customer. */
export interface StatementLine {
  readonly at: string;
  readonly what: string;
  /** A quote's digest, or a transaction; undefined if the entry names none. */
  readonly reference: string | undefined;
  readonly move: Move;
  /** Above 0 if the operator owes more. */
  readonly atoms: bigint;
}

/** What the operator owed a customer, by account and commodity, and how it changed. Amounts owed are above 0. */
export interface Statement {
  readonly opening: readonly Balance[];
  readonly lines: readonly StatementLine[];
  readonly closing: readonly Balance[];
}

/** An amount that is owed to a customer at a moment. */
export interface OwedAmount {
  readonly account: string;
  readonly commodity: Commodity;
  readonly atoms: bigint;
}

/** A customer's statement so far: from what was owed when the period began, take every entry of the period, in order. */
export class StatementFold {
  readonly #customer: string;
  readonly #owed = new Balances();
  readonly #lines: StatementLine[] = [];
  readonly #opening: readonly Balance[];
  /** By name: what was owed before and the entries were read apart. */
  readonly #commodities = new Map<string, Commodity>();

  constructor(customer: string, opening: Iterable<OwedAmount>) {
    this.#customer = customer;
    for (const { account, commodity, atoms } of opening) this.#add(account, commodity, atoms);
    this.#opening = this.#list();
  }

  take(entry: Entry): void {
    for (const move of entry.moves) {
      if (customerOf(entry, move) !== this.#customer) continue;
      for (const [account, atoms] of [
        [move.credit, move.atoms],
        [move.debit, -move.atoms],
      ] as const) {
        if (!account.startsWith('Liabilities:')) continue;
        this.#add(account, move.commodity, atoms);
        const { category: what, recordedAt: at, quoteDigest, transaction } = entry;
        this.#lines.push({ at, what, reference: quoteDigest ?? transaction, move, atoms });
      }
    }
  }

  finish(): Statement {
    return { opening: this.#opening, lines: this.#lines, closing: this.#list() };
  }

  #add(account: string, commodity: Commodity, atoms: bigint): void {
    const known = this.#commodities.get(commodity.name) ?? commodity;
    this.#commodities.set(commodity.name, known);
    this.#owed.add(account, known, atoms);
  }

  #list(): Balance[] {
    return this.#owed.list().filter(({ atoms }) => atoms !== 0n);
  }
}

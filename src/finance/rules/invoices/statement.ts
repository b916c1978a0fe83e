import { Balances, type Balance, type Entry, type Move } from '../../../base/values/entry.ts';
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

/** A customer's statement so far. Take every entry of the ledger, in order, up to the end of the period. */
export class StatementFold {
  readonly #customer: string;
  readonly #fromMs: number;
  readonly #owed = new Balances();
  readonly #lines: StatementLine[] = [];
  #opening: readonly Balance[] | undefined;

  constructor(customer: string, fromMs: number) {
    this.#customer = customer;
    this.#fromMs = fromMs;
  }

  take(entry: Entry): void {
    const isOfPeriod = Date.parse(entry.recordedAt) >= this.#fromMs;
    if (isOfPeriod) this.#opening ??= this.#list();
    for (const move of entry.moves) {
      if (customerOf(entry, move) !== this.#customer) continue;
      for (const [account, atoms] of [
        [move.credit, move.atoms],
        [move.debit, -move.atoms],
      ] as const) {
        if (!account.startsWith('Liabilities:')) continue;
        this.#owed.add(account, move.commodity, atoms);
        const { category: what, recordedAt: at, quoteDigest, transaction } = entry;
        if (isOfPeriod) this.#lines.push({ at, what, reference: quoteDigest ?? transaction, move, atoms });
      }
    }
  }

  finish(): Statement {
    return { opening: this.#opening ?? this.#list(), lines: this.#lines, closing: this.#list() };
  }

  #list(): Balance[] {
    return this.#owed.list().filter(({ atoms }) => atoms !== 0n);
  }
}

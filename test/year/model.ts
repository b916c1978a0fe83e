import type { YearToken } from './chain.ts';

/**
 * What a year must come to, computed from what the program did and from nothing that Tollbook recorded. Its account names are those of
 * docs/finance/books.md.
 */
export class YearModel {
  readonly payments = new Map<string, ModelPayment>();
  readonly transfers: ModelTransfer[] = [];
  readonly #postings: Posting[] = [];
  readonly #moves: Move[] = [];

  /** An amount from the credit account to the debit account, at the time of its recording. */
  post(atMs: number, debit: string, credit: string, commodity: string, atoms: bigint): void {
    this.#postings.push({ atMs, account: debit, commodity, atoms });
    this.#postings.push({ atMs, account: credit, commodity, atoms: -atoms });
  }

  /** A transfer to the payee (above 0) or from it, at the time of its block. */
  move(blockMs: number, { symbol }: YearToken, atoms: bigint): void {
    this.#moves.push({ blockMs, symbol, atoms });
  }

  /** What the payee holds of a token before a time. */
  held({ symbol }: YearToken, beforeMs: number): bigint {
    let sum = 0n;
    for (const move of this.#moves) if (move.symbol === symbol && move.blockMs < beforeMs) sum += move.atoms;
    return sum;
  }

  /**
   * The balance of every account that is not zero as the books of a period close, as `account commodity`. Income, expenses and
   * conversions are those of the period; all before it is equity.
   */
  balances(fromMs: number, toMs: number): Map<string, bigint> {
    const sums = new Map<string, bigint>();
    const add = (key: string, atoms: bigint) => sums.set(key, (sums.get(key) ?? 0n) + atoms);
    for (const { atMs, account, commodity, atoms } of this.#postings) {
      if (atMs >= toMs) continue;
      const isEarlier = atMs < fromMs && /^(?:Income:|Expenses:|Equity:Conversion$)/.test(account);
      add(`${isEarlier ? 'Equity:Opening' : account} ${commodity}`, atoms);
    }
    return new Map([...sums].filter(([, atoms]) => atoms !== 0n));
  }

  /** Of an account, before a time. */
  balanceOf(name: string, of: string, beforeMs: number): bigint {
    let sum = 0n;
    for (const { atMs, account, commodity, atoms } of this.#postings)
      if (atMs < beforeMs && account === name && commodity === of) sum += atoms;
    return sum;
  }

  /** The class and the subject of every item of a reconciliation that is not simply matched, made after all of this was recorded. */
  exceptions(fromMs: number, toMs: number): string[] {
    const isIn = (ms: number): boolean => ms >= fromMs && ms < toMs;
    const found: string[] = [];
    for (const { name, blockMs, settledMs, dueAtoms } of this.payments.values()) {
      if (blockMs === undefined || blockMs >= toMs) continue;
      if (dueAtoms > 0n) found.push(`refund_due ${name}`);
      else if (isIn(blockMs) !== isIn(settledMs)) found.push(`timing ${name}`);
    }
    for (const { name, blockMs, bookedMs, as } of this.transfers) {
      if (isIn(blockMs) || (as === 'suspense' && blockMs < fromMs)) found.push(`${as} ${name}`);
      else if (blockMs < fromMs && isIn(bookedMs)) found.push(`timing ${name}`);
    }
    return found.toSorted();
  }

  /** The number of payments that a reconciliation finds simply matched. */
  matched(fromMs: number, toMs: number): number {
    const isIn = (ms: number): boolean => ms >= fromMs && ms < toMs;
    let count = 0;
    for (const { blockMs, settledMs, dueAtoms } of this.payments.values())
      if (blockMs !== undefined && isIn(blockMs) && isIn(settledMs) && dueAtoms === 0n) count += 1;
    return count;
  }

  /** The transfers that the chain has at a time and the books do not yet, or the other way round: name and atoms, by reason. */
  late({ symbol }: YearToken, atMs: number): Record<'recorded_after' | 'mined_after', string[]> {
    const found = { recorded_after: [] as string[], mined_after: [] as string[] };
    const all = [...this.payments.values()].map((one) => ({ ...one, bookedMs: one.settledMs }));
    for (const { token, blockMs = Infinity, bookedMs, atoms, name } of [...all, ...this.transfers]) {
      if (token.symbol !== symbol || atoms === 0n) continue;
      if (blockMs < atMs && bookedMs >= atMs) found.recorded_after.push(`${name} ${atoms}`);
      if (blockMs >= atMs && bookedMs < atMs) found.mined_after.push(`${name} ${-atoms}`);
    }
    return found;
  }
}

/** A payment, by the name of its stream. */
export interface ModelPayment {
  readonly name: string;
  readonly token: YearToken;
  readonly atoms: bigint;
  /** Of the block that has it; undefined if none has. */
  blockMs: number | undefined;
  /** Recorded as settled. */
  settledMs: number;
  /** What is owed back of it. */
  dueAtoms: bigint;
}

/** A transfer that is not a payment, by its transaction or by the stream that it refunds. */
export interface ModelTransfer {
  readonly name: string;
  readonly token: YearToken;
  /** To the payee above 0, from it below. */
  readonly atoms: bigint;
  readonly blockMs: number;
  bookedMs: number;
  as: 'refund' | 'sweep' | 'suspense' | 'income' | 'returned' | 'own';
}

interface Posting {
  readonly atMs: number;
  readonly account: string;
  readonly commodity: string;
  readonly atoms: bigint;
}

interface Move {
  readonly blockMs: number;
  readonly symbol: string;
  readonly atoms: bigint;
}

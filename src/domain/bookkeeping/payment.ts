import { accounts, chainAccount, jobIncome, unconfirmedAccount } from './account.ts';
import type { Commodity, Move } from './entry.ts';

/** What the books remember of one payment while it is open. */
export interface BookedPayment {
  readonly serviceId: number;
  readonly jobIndex: number;
  readonly token: Commodity;
  readonly payTo: string;
  readonly payer: string;
  readonly nonce: string;
  atoms: bigint;
  /** Whose word there is that it was paid: nobody's, a facilitator's alone, or the chain's or an operator's. */
  basis: 'none' | 'word' | 'sure';
  /** What its payer has of it. */
  claim: 'undelivered' | 'refunds_due' | 'delivered' | 'topped_up';
  callId: number | undefined;
  isCompleted: boolean;
  /** It may land late all the same. */
  hasFailed: boolean;
  /** The account that a refund was paid from. */
  refundedFrom: string | undefined;
}

/** Whether nothing of it is owed or doubted any more. */
export function isClosed({ basis, isCompleted, claim, refundedFrom }: BookedPayment): boolean {
  return basis === 'sure' && (refundedFrom !== undefined || (isCompleted && claim !== 'refunds_due'));
}

/** Debits above 0, credits below, all of one payment: they add up to 0. */
export type Position = ReadonlyMap<string, bigint>;

/**
 * Where a payment stands in the books. Postings are the differences between two of these, so whatever is told of a payment,
 * in whatever order, the books end at the same place.
 */
export function positionOf(payment: BookedPayment): Position {
  const { token, payTo, atoms, basis, refundedFrom } = payment;
  const position = new Map<string, bigint>();
  const add = (account: string, sum: bigint): void => {
    position.set(account, (position.get(account) ?? 0n) + sum);
  };
  if (basis === 'word') add(unconfirmedAccount(token, payTo), atoms);
  if (basis === 'sure') add(chainAccount(token, payTo), atoms);
  if (refundedFrom === undefined) {
    if (basis !== 'none') add(claimAccount(payment), -atoms);
    return position;
  }
  add(refundedFrom, -atoms);
  if (basis === 'none') add(accounts.lostRefunds, atoms);
  else if (isEarned(payment)) {
    add(claimAccount(payment), -atoms);
    add(accounts.refunds, atoms);
  }
  return position;
}

function isEarned({ claim }: BookedPayment): boolean {
  return claim === 'delivered' || claim === 'topped_up';
}

function claimAccount({ claim, serviceId, jobIndex, basis }: BookedPayment): string {
  switch (claim) {
    case 'undelivered':
      return accounts.undelivered;
    case 'refunds_due':
      return accounts.refundsDue;
    case 'delivered':
      return jobIncome(serviceId, jobIndex, basis === 'sure');
    case 'topped_up':
      return accounts.conversion;
  }
}

/** What takes a payment from one position to another. */
export function movesBetween(before: Position, after: Position, commodity: Commodity): Move[] {
  const changes = [...new Set([...before.keys(), ...after.keys()])]
    .map((account) => ({ account, atoms: (after.get(account) ?? 0n) - (before.get(account) ?? 0n) }))
    .filter(({ atoms }) => atoms !== 0n);
  const debits = changes.filter(({ atoms }) => atoms > 0n);
  const credits = changes.filter(({ atoms }) => atoms < 0n);
  const moves: Move[] = [];
  for (const debit of debits)
    while (debit.atoms > 0n) {
      const credit =
        credits.find(({ account, atoms }) => atoms < 0n && rootOf(account) === rootOf(debit.account)) ??
        credits.find(({ atoms }) => atoms < 0n);
      if (!credit) throw new Error('a position does not add up to 0');
      const atoms = debit.atoms < -credit.atoms ? debit.atoms : -credit.atoms;
      moves.push({ debit: debit.account, credit: credit.account, commodity, atoms });
      debit.atoms -= atoms;
      credit.atoms += atoms;
    }
  return moves;
}

function rootOf(account: string): string {
  return account.slice(0, account.indexOf(':'));
}

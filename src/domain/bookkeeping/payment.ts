import { accounts, chainAccount, jobIncome, unconfirmedAccount } from './account.ts';
import type { NamedProgress } from '../payments/payment-progress.ts';
import type { Commodity, Move } from './entry.ts';

/** What the books remember of one payment while it is open: its progress, and what only the books need. */
export interface BookedPayment extends NamedProgress {
  readonly serviceId: number;
  readonly jobIndex: number;
  readonly token: Commodity;
  readonly payTo: string;
  readonly signedAtoms: bigint;
  /** It settled after another payment had settled for its quote. */
  readonly isSecond: boolean;
  /** Whether its call bought credit, and whether that was reversed. */
  readonly topUp: 'credited' | 'reversed' | undefined;
  /** The account in the books from which it was refunded. */
  readonly refundedFrom: string | undefined;
}

/** What shows that it was paid: nothing, a facilitator's report alone, or the chain or an operator. */
function basisOf({ settled }: BookedPayment): 'none' | 'reported' | 'proven' {
  if (!settled) return 'none';
  return settled.evidence !== 'facilitator' || settled.proof ? 'proven' : 'reported';
}

/** What the operator owes its payer, or earned. */
function dueOf({
  call,
  topUp,
  isSecond,
  recovered,
}: BookedPayment): 'undelivered' | 'refunds_due' | 'delivered' | 'topped_up' {
  if (topUp) return topUp === 'credited' ? 'topped_up' : 'refunds_due';
  const isForfeited = isSecond || (recovered && !recovered.redelivery);
  if (call?.status === 'dead_lettered' || (!call && isForfeited)) return 'refunds_due';
  return call?.status === 'completed' ? 'delivered' : 'undelivered';
}

/** Whether nothing more is owed or uncertain. */
export function isClosed(payment: BookedPayment): boolean {
  const isDelivered = payment.call?.status === 'completed' && dueOf(payment) !== 'refunds_due';
  return basisOf(payment) === 'proven' && (payment.refundedFrom !== undefined || isDelivered);
}

/** Debits above 0, credits below, all of one payment: they add up to 0. */
export type Position = ReadonlyMap<string, bigint>;

/**
 * A payment's position in the books. Postings are the differences between two positions, so the books end at the same
 * position whatever the order of the events.
 */
export function positionOf(payment: BookedPayment): Position {
  const { token, payTo, settled, signedAtoms, refundedFrom } = payment;
  const [basis, due] = [basisOf(payment), dueOf(payment)];
  const atoms = settled ? BigInt(settled.amount) : signedAtoms;
  const position = new Map<string, bigint>();
  const add = (account: string, sum: bigint): void => {
    position.set(account, (position.get(account) ?? 0n) + sum);
  };
  if (basis === 'reported') add(unconfirmedAccount(token, payTo), atoms);
  if (basis === 'proven') add(chainAccount(token, payTo), atoms);
  if (refundedFrom === undefined) {
    if (basis !== 'none') add(dueAccount(payment), -atoms);
    return position;
  }
  add(refundedFrom, -atoms);
  if (basis === 'none') add(accounts.lostRefunds, atoms);
  else if (due === 'delivered' || due === 'topped_up') {
    add(dueAccount(payment), -atoms);
    add(accounts.refunds, atoms);
  }
  return position;
}

function dueAccount(payment: BookedPayment): string {
  switch (dueOf(payment)) {
    case 'undelivered':
      return accounts.undelivered;
    case 'refunds_due':
      return accounts.refundsDue;
    case 'delivered':
      return jobIncome(payment.serviceId, payment.jobIndex, basisOf(payment) === 'proven');
    case 'topped_up':
      return accounts.conversion;
  }
}

/** The moves from one position to another. */
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

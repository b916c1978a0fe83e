import { accounts, chainAccount, jobIncome, unconfirmedAccount } from './account.ts';
import { type NamedProgress, refundedAtoms } from '../../../payments/rules/payment-progress.ts';
import type { Commodity, EntryPayment, Move } from '../../../base/values/entry.ts';

/** One open payment in the books: its progress, and values that only the books need. */
export interface BookedPayment extends NamedProgress {
  readonly serviceId: number;
  readonly jobIndex: number;
  readonly token: Commodity;
  readonly payTo: string;
  readonly signedAtoms: bigint;
  /** Of the request that it was made for. */
  readonly requestId: string | undefined;
  /** RFC 3339, by the time of recording. */
  readonly startedAt: string;
  /** Whether its call bought credit, and how many of its atoms that was taken back for. */
  readonly topUp: { readonly reversedAtoms: bigint } | undefined;
  /** The atoms of its refunds by the account in the books that they came from. */
  readonly refundedFrom: Position;
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
  recovered,
  refundGrantedAt,
}: BookedPayment): 'undelivered' | 'refunds_due' | 'delivered' | 'topped_up' {
  if (topUp) return 'topped_up';
  const isForfeited = recovered && !recovered.redelivery;
  if (call?.status === 'dead_lettered' || (!call && isForfeited)) return 'refunds_due';
  if (call?.status !== 'completed') return 'undelivered';
  return refundGrantedAt === undefined ? 'delivered' : 'refunds_due';
}

/** Whether nothing more is owed or uncertain. */
export function isClosed(payment: BookedPayment): boolean {
  const isDelivered = payment.call?.status === 'completed' && refundedAtoms(payment) >= partsOf(payment).owed;
  return basisOf(payment) === 'proven' && (payment.isRefunded || isDelivered);
}

/** Whether its settlement has no outcome. */
export function isUnsettled({ status }: BookedPayment): boolean {
  return status === 'settling' || status === 'settlement_unknown';
}

/** Debits above 0, credits below, all of one payment: they add up to 0. */
export type Position = ReadonlyMap<string, bigint>;

/** The amount that settled; the signed one while none did. */
export function atomsOf({ settled, signedAtoms }: BookedPayment): bigint {
  return settled ? BigInt(settled.amount) : signedAtoms;
}

/** Its atoms: earned or converted, and owed until the payment is delivered or refunded. */
function partsOf(payment: BookedPayment): { readonly kept: bigint; readonly owed: bigint } {
  const atoms = atomsOf(payment);
  switch (dueOf(payment)) {
    case 'undelivered':
    case 'refunds_due':
      return { kept: 0n, owed: atoms };
    case 'delivered':
      return { kept: atoms, owed: 0n };
    case 'topped_up': {
      const owed = payment.topUp?.reversedAtoms ?? 0n;
      return { kept: atoms - owed, owed };
    }
  }
}

/**
 * A payment's position in the books. Postings are the differences between two positions, so the books end at the same
 * position whatever the order of the events. Refunds reduce the amount owed first, then income.
 */
export function positionOf(payment: BookedPayment): Position {
  const { token, payTo, refundedFrom } = payment;
  const basis = basisOf(payment);
  const { kept, owed } = partsOf(payment);
  const refunded = refundedAtoms(payment);
  const position = new Map<string, bigint>();
  const add = (account: string, sum: bigint): void => {
    if (sum !== 0n) position.set(account, (position.get(account) ?? 0n) + sum);
  };
  for (const [account, atoms] of refundedFrom) add(account, -atoms);
  if (basis === 'none') {
    add(accounts.lostRefunds, refunded);
    return position;
  }
  const holding = basis === 'reported' ? unconfirmedAccount(token, payTo) : chainAccount(token, payTo);
  const repaid = refunded < owed ? refunded : owed;
  add(holding, kept + owed);
  add(keptAccount(payment), -kept);
  add(owedAccount(payment), repaid - owed);
  add(accounts.refunds, refunded - repaid);
  return position;
}

function keptAccount(payment: BookedPayment): string {
  return payment.topUp
    ? accounts.conversion
    : jobIncome(payment.serviceId, payment.jobIndex, basisOf(payment) === 'proven');
}

function owedAccount(payment: BookedPayment): string {
  return dueOf(payment) === 'undelivered' ? accounts.undelivered : accounts.refundsDue;
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

/** What an entry says of its payment. */
export function namesOf({ payment, call, settled, payTo, ...of }: BookedPayment): EntryPayment {
  const { network, asset, payer, nonce } = payment;
  const { serviceId, jobIndex, requestId } = of;
  const place = settled?.proof;
  return {
    serviceId,
    jobIndex,
    callId: call?.callId,
    nonce,
    requestId,
    payer,
    network,
    asset,
    payTo,
    place: place && { blockNumber: place.blockNumber, logIndex: place.logIndex },
  };
}

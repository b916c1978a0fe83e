import type { EventData, LedgerEvent } from '../../../ledger/rules/event.ts';
import {
  reversalId,
  topUpId,
  foldTopUp,
  microsToReverse,
  type TopUpState,
} from '../../../accounts/rules/credit/top-up.ts';
import type { Address } from '../../../base/values/primitives.ts';
import type { CreditCommand } from '../../../ledger/store/append-batch.ts';
import { findAccount } from '../../../accounts/store/credit.ts';
import type { LedgerDatabase } from '../../../ledger/store/database.ts';
import { accountNameOf, findUser } from '../../../accounts/store/identity.ts';
import { isAccountClosed } from '../../../accounts/store/user-erasure.ts';
import { findCreditRequest } from '../../../accounts/store/top-ups.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import {
  accountStream,
  openCreditAccount,
  recordOpening,
} from '../../../accounts/use-cases/credit/credit.ts';
import type { Identity } from '../../../accounts/use-cases/context.ts';
import { openWalletUser } from '../../../accounts/use-cases/wallet-user.ts';

interface Ledger extends Pick<Identity, 'pool' | 'lane' | 'log'> {
  readonly db: LedgerDatabase;
}

/** The payment of a call that buys credit. */
export type PaidTopUp = Omit<EventData<'credit_topped_up'>, 'account_id' | 'amount_micros'>;

/** What a top-up credited. */
export interface ToppedUp {
  readonly account: string;
  readonly creditedMicros: bigint;
  /** What the account could spend after it. */
  readonly balanceMicros: bigint;
}

/** Whom a top-up credits: the account that its order names, or that of the payer's wallet. */
export type Beneficiary =
  | { readonly accountId: number }
  /** The chain where the payer is a contract; undefined if a key has signed the payment. */
  | { readonly contractOn: number | undefined };

/**
 * Credits an account with what was paid, once per call: repeated, also by another process, it returns the same result. The account of a
 * wallet is the one that a sign-in with it uses. Refused when the account would hold 2^53 micros or more, when the one that an order
 * names was closed, or when the top-up was reversed: its payment is then due as a refund.
 */
export async function topUp(
  ledger: Ledger,
  paid: PaidTopUp,
  amountMicros: bigint,
  beneficiary: Beneficiary = { contractOn: undefined },
): Promise<({ readonly kind: 'credited' } & ToppedUp) | { readonly kind: 'refused' }> {
  // the wallet may belong to another user by now
  const done = await findDone(ledger, paid.call_id);
  if (done)
    return (await hasToppedUp(ledger, paid.call_id)) ? { kind: 'credited', ...done } : { kind: 'refused' };
  const credited = await openBeneficiary(ledger, paid, beneficiary);
  if (!credited) return { kind: 'refused' };
  const { account, accountId, userId } = credited;
  const data = { ...paid, account_id: accountId, amount_micros: String(amountMicros) };
  const command: CreditCommand = {
    stream: accountStream(accountId),
    events: [{ type: 'credit_topped_up', data }],
    credit: { op: 'top_up', accountId, amountMicros, requestId: topUpId(paid.call_id) },
  };
  const outcome = await ledger.lane.appendCredit(command, { urgent: true });
  if (outcome.outcome !== 'ok') {
    const first = await findDone(ledger, paid.call_id);
    if (first) return { kind: 'credited', ...first };
    if (!(await isAccountClosed(ledger.pool, accountId))) return { kind: 'refused' };
    // its user was erased meanwhile: from now on the wallet leads to another one
    if (userId === undefined) return { kind: 'refused' };
    if ((await findUser(ledger.pool, userId)) === undefined)
      return topUp(ledger, paid, amountMicros, beneficiary);
    throw new Error('the user of the wallet is being erased: the top-up is tried again');
  }
  return {
    kind: 'credited',
    account,
    creditedMicros: amountMicros,
    balanceMicros: BigInt(outcome.detail.available ?? 0),
  };
}

/** `userId`: of a wallet, which leads to another user once this one is erased. */
async function openBeneficiary(
  ledger: Ledger,
  paid: PaidTopUp,
  beneficiary: Beneficiary,
): Promise<{ readonly account: string; readonly accountId: number; readonly userId?: string } | undefined> {
  if ('accountId' in beneficiary) {
    const known = await findAccount(ledger.db, beneficiary);
    if (known) await recordOpening(ledger, known.accountId);
    return known && { account: known.name, accountId: known.accountId };
  }
  const { contractOn } = beneficiary;
  const userId = await openWalletUser(ledger.pool, { address: paid.payer as Address, contractOn });
  const account = accountNameOf(userId);
  return { account, accountId: await openCreditAccount(ledger, account), userId };
}

/**
 * Reverses the credit of a call whose payment did not last or was refunded, as far as the account still has it, and only what was credited.
 * What was spent already is recorded and logged as missing. Repeated, also by another process, it changes nothing more.
 * @param refundedAtoms how much of the payment was refunded; undefined if none of it stands
 */
export async function reverseTopUp(
  ledger: Ledger,
  of: Pick<PaidTopUp, 'call_id' | 'quote_digest'>,
  refundedAtoms?: bigint,
): Promise<void> {
  const known = await readTopUp(ledger, of.call_id);
  if (!known) return;
  const { accountId, topUp: state } = known;
  const goal = refundedAtoms ?? state.atoms;
  if (goal <= state.reversedAtoms) return;
  const micros = microsToReverse(state, goal);
  const balance = BigInt((await findAccount(ledger.db, { accountId }))?.balanceMicros ?? 0);
  const taken = balance < micros ? balance : micros;
  const amounts = { amount_micros: String(taken), missing_micros: String(micros - taken) };
  const part = goal === state.atoms ? {} : { atoms: String(goal - state.reversedAtoms) };
  const event: LedgerEvent = {
    type: 'credit_reversed',
    data: { ...of, account_id: accountId, ...amounts, ...part },
  };
  // of two reversals that saw the same state one is recorded
  const requestId = reversalId(of.call_id, state.reversedAtoms);
  const credit = { op: 'expire', accountId, amountMicros: taken, requestId } as const;
  const command: CreditCommand = { stream: accountStream(accountId), events: [event], credit };
  const { outcome } = await ledger.lane.appendCredit(command, { urgent: true });
  // another process was first, or the account spent some of it between the look-up and the move
  if (outcome !== 'ok') return reverseTopUp(ledger, of, refundedAtoms);
  ledger.log.error(
    { ...of, account_id: accountId, ...amounts, ...part },
    'credit was reversed: its payment did not last, or was refunded',
  );
}

/** The credit of a call, and whose it is; undefined if none was given. */
async function readTopUp(
  { pool }: Pick<Ledger, 'pool'>,
  callId: number,
): Promise<{ readonly accountId: number; readonly topUp: TopUpState } | undefined> {
  const given = await findCreditRequest(pool, topUpId(callId));
  if (!given) return undefined;
  const { events } = await readStream(pool, accountStream(given.accountId));
  const state = foldTopUp(events, callId);
  return state && { accountId: given.accountId, topUp: state };
}

async function findDone({ pool, db }: Ledger, callId: number): Promise<ToppedUp | undefined> {
  const done = await findCreditRequest(pool, topUpId(callId));
  const account = done && (await findAccount(db, done));
  return (
    account && { account: account.name, creditedMicros: done.amountMicros, balanceMicros: done.balanceMicros }
  );
}

/** Whether the credit of a call was given and not reversed as a whole. */
export async function hasToppedUp(ledger: Pick<Ledger, 'pool'>, callId: number): Promise<boolean> {
  const known = await readTopUp(ledger, callId);
  return known !== undefined && known.topUp.reversedAtoms < known.topUp.atoms;
}

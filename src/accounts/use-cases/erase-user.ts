import { expireCredit } from './credit/credit.ts';
import { findAccount } from '../store/credit.ts';
import { accountNameOf, findSessionsOf, findUser, findUserIds, openUserAccount } from '../store/identity.ts';
import { eraseCallbacks } from '../../calls/store/callbacks.ts';
import { eraseRefundReasons } from '../../payments/store/refund-requests.ts';
import { eraseResults, eraseUserData, findWalletsOf, isAccountClosed } from '../store/user-erasure.ts';
import { endUserSessions, pruneSessions } from './sessions.ts';
import { subjectsOf } from './sign-in-limits.ts';
import { revokeUserApiKeys } from './user-api-keys.ts';
import { setUserDisabled } from './users.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';

export interface Erasure {
  /** Id, email address or wallet. */
  readonly who: string;
  readonly operator: string;
  /** Whether credit that is left expires. Otherwise a user with credit is not erased. */
  readonly forfeits: boolean;
  /** Whether the results of calls go that the user's wallets have paid for. */
  readonly withResults: boolean;
}

export type ErasureResult =
  | {
      readonly kind: 'erased';
      readonly userId: string;
      /** Where mails may be left. */
      readonly email: string;
      readonly forfeitedMicros: bigint;
      readonly resultsDeleted: number;
    }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'several'; readonly userIds: readonly string[] }
  | { readonly kind: 'has_credit'; readonly account: string; readonly balanceMicros: bigint }
  /** A completion is running, or its cost may still be corrected. */
  | { readonly kind: 'busy'; readonly account: string };

const rowsAtOnce = 200;

/**
 * Erases a person: all data about a user outside the ledger, which has only ids. Nothing is changed if the user has
 * credit that is not forfeited, or a completion that runs. The user is disabled first; then the ledger closes the account and has the
 * event, in one append and only without credit; then the rows are deleted. May be repeated: a repetition finishes an interrupted call.
 */
export async function eraseUser(ledger: Ledger, erasure: Erasure): Promise<ErasureResult> {
  const { pool } = ledger;
  const [userId, ...others] = await findUserIds(pool, erasure.who);
  if (userId === undefined) return { kind: 'unknown' };
  if (others.length > 0) return { kind: 'several', userIds: [userId, ...others] };
  const { accountId } = await openUserAccount(pool, userId);
  let forfeitedMicros = 0n;
  if (!(await isAccountClosed(pool, accountId))) {
    const refusal = await refusalOf(ledger, accountId, erasure);
    if (refusal) return refusal;
    await setUserDisabled(ledger, { who: userId, operator: erasure.operator, isDisabled: true });
    await revokeUserApiKeys(ledger, { accountId });
    const closed = await closeAccount(ledger, userId, accountId, erasure);
    if (closed.kind !== 'closed') return closed;
    ({ forfeitedMicros } = closed);
  }
  const email = (await findUser(pool, userId))?.email ?? '';
  const resultsDeleted = await deleteRows(ledger, { userId, accountId, email }, erasure.withResults);
  return { kind: 'erased', userId, email, forfeitedMicros, resultsDeleted };
}

type Refusal = Extract<ErasureResult, { kind: 'has_credit' | 'busy' }>;

async function refusalOf(
  { db }: Ledger,
  accountId: number,
  { forfeits }: Pick<Erasure, 'forfeits'>,
): Promise<Refusal | undefined> {
  const account = await findAccount(db, { accountId });
  if (!account) throw new Error('the account of a user was opened, but it does not exist');
  const { name, heldMicros, balanceMicros } = account;
  if (heldMicros > 0) return { kind: 'busy', account: name };
  if (balanceMicros === 0 || forfeits) return undefined;
  return { kind: 'has_credit', account: name, balanceMicros: BigInt(balanceMicros) };
}

async function closeAccount(
  ledger: Ledger,
  userId: string,
  accountId: number,
  erasure: Erasure,
): Promise<{ readonly kind: 'closed'; readonly forfeitedMicros: bigint } | Refusal> {
  let forfeitedMicros = 0n;
  for (;;) {
    const refusal = await refusalOf(ledger, accountId, erasure);
    if (refusal) return refusal;
    const left = await balanceOf(ledger, accountId);
    if (left > 0n) {
      const { kind } = await expireCredit(ledger, accountId, left);
      if (kind === 'moved') forfeitedMicros += left;
      continue;
    }
    const { outcome } = await ledger.lane.appendCredit({
      stream: `user:${userId}`,
      events: [{ type: 'user_erased', data: { user_id: userId, operator: erasure.operator } }],
      credit: { op: 'close', accountId },
    });
    if (outcome === 'ok' || (await isAccountClosed(ledger.pool, accountId)))
      return { kind: 'closed', forfeitedMicros };
    // credit that came meanwhile is looked at again
    if ((await balanceOf(ledger, accountId)) === 0n) return { kind: 'busy', account: accountNameOf(userId) };
  }
}

async function balanceOf({ db }: Ledger, accountId: number): Promise<bigint> {
  return BigInt((await findAccount(db, { accountId }))?.balanceMicros ?? 0);
}

/** Returns how many results were deleted. */
async function deleteRows(
  ledger: Ledger,
  {
    userId,
    accountId,
    email,
  }: { readonly userId: string; readonly accountId: number; readonly email: string },
  withResults: boolean,
): Promise<number> {
  const { pool } = ledger;
  const wallets = await findWalletsOf(pool, userId);
  let resultsDeleted = 0;
  for (let deleted = withResults ? rowsAtOnce : 0; deleted === rowsAtOnce;) {
    deleted = await eraseResults(pool, wallets, rowsAtOnce);
    resultsDeleted += deleted;
  }
  while ((await eraseCallbacks(pool, wallets, rowsAtOnce)) === rowsAtOnce);
  while ((await eraseRefundReasons(pool, wallets, rowsAtOnce)) === rowsAtOnce);
  const subjects = [...subjectsOf(email), ...wallets.map((address) => `siwe:${address}`)];
  do {
    await endUserSessions(ledger, await findSessionsOf(pool, userId));
    // also those whose end is not recorded yet
    await pruneSessions(ledger, rowsAtOnce);
  } while (!(await eraseUserData(pool, userId, accountId, subjects)));
  return resultsDeleted;
}

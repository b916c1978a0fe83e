import type { LedgerEvent } from '../../ledger/rules/event.ts';
import { findSessionsOf, findUserIds, openUserAccount, setAccountDisabled } from '../store/identity.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { endUserSessions } from './sessions.ts';
import type { LedgerWriter } from '../../ledger/store/ledger.ts';

export type UserChange =
  | { readonly kind: 'changed'; readonly userId: string; readonly sessionsEnded: number }
  /** The user is disabled, or not, already. */
  | { readonly kind: 'unchanged'; readonly userId: string }
  | { readonly kind: 'unknown' }
  /** The address of a contract may belong to another user on each chain. */
  | { readonly kind: 'several'; readonly userIds: readonly string[] };

/**
 * Disables a user, or ends that. A disabled user cannot sign in, and neither sessions nor keys of the account are accepted in any
 * process from then on; enabling makes the keys valid again. May be repeated: a repetition finishes an interrupted call.
 */
export async function setUserDisabled(
  ledger: LedgerWriter,
  {
    who,
    operator,
    isDisabled,
  }: {
    /** Id, email address or wallet. */
    readonly who: string;
    readonly operator: string;
    readonly isDisabled: boolean;
  },
): Promise<UserChange> {
  const [userId, ...others] = await findUserIds(ledger.pool, who);
  if (userId === undefined) return { kind: 'unknown' };
  if (others.length > 0) return { kind: 'several', userIds: [userId, ...others] };
  const { accountId } = await openUserAccount(ledger.pool, userId);
  await setAccountDisabled(ledger.pool, accountId, isDisabled);
  const isRecorded = await record(ledger, userId, operator, isDisabled);
  const sessions = isDisabled ? await findSessionsOf(ledger.pool, userId) : [];
  const sessionsEnded = await endUserSessions(ledger, sessions);
  return isRecorded ? { kind: 'changed', userId, sessionsEnded } : { kind: 'unchanged', userId };
}

/** Records the change, unless the user's last event records it already. */
async function record(
  { pool, lane }: LedgerWriter,
  userId: string,
  operator: string,
  isDisabled: boolean,
): Promise<boolean> {
  const stream = `user:${userId}`;
  const data = { user_id: userId, operator };
  const event: LedgerEvent = isDisabled ? { type: 'user_disabled', data } : { type: 'user_enabled', data };
  for (;;) {
    const { events } = await readStream(pool, stream);
    const last = events.at(-1)?.type;
    if (last === 'user_erased' || (last === 'user_disabled') === isDisabled) return false;
    const { outcome } = await lane.append({ stream, expect: events.length, events: [event] });
    if (outcome === 'ok') return true;
  }
}

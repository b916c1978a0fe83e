import type { LedgerEvent, RecordedEvent } from '../../ledger/rules/event.ts';
import type { OperatorRole } from '../../base/values/operator-role.ts';
import { findSessionsOf } from '../store/identity.ts';
import {
  deleteFactors,
  dropInvitations,
  endOperatorSessions,
  findNameOf,
  findOperatorNamed,
  isAdmin,
  setRole,
  takeRole,
  type TakenRole,
} from '../store/operators.ts';
import { readLatestEvents } from '../../ledger/store/streams.ts';
import { endUserSessions } from './sessions.ts';
import type { LedgerWriter } from '../../ledger/store/ledger.ts';

/** The stream of the console's operators, and of their actions there. */
const stream = 'operator:console';

/** A person at the console. */
export interface Operator {
  /** What events call them. */
  readonly name: string;
  readonly userId: string;
  readonly role: OperatorRole;
}

export async function recordInConsole(
  { lane }: Pick<LedgerWriter, 'lane'>,
  event: LedgerEvent,
): Promise<void> {
  await lane.append({ stream, events: [event] });
}

/** What happened in the console, the latest first, before a version of its stream. */
export function readConsoleEvents(
  { pool }: Pick<LedgerWriter, 'pool'>,
  before: number | undefined,
  most: number,
): Promise<RecordedEvent[]> {
  return readLatestEvents(pool, stream, most, before);
}

/** When something last happened in the console; undefined if nothing has. */
export async function readLastConsoleTime({ pool }: Pick<LedgerWriter, 'pool'>): Promise<Date | undefined> {
  const [last] = await readLatestEvents(pool, stream, 1);
  return last && new Date(last.at);
}

/** Records that an operator asks for something, before it is done. */
export async function recordAction(
  ledger: Pick<LedgerWriter, 'lane'>,
  { name: operator, userId: user_id }: Operator,
  action: string,
  subject?: string,
): Promise<void> {
  const data = { operator, user_id, action, ...(subject !== undefined && { subject }) };
  await recordInConsole(ledger, { type: 'operator_acted', data });
}

/** The author of a change of roles: a person at the console, who must be an admin when it takes effect, or a command, which needs no role. */
export interface RoleChanger {
  readonly name: string;
  readonly at: 'console' | 'command';
}

export type RoleGrant =
  | { readonly kind: 'granted' }
  /** The name is another user's, or the user has another name: names are for ever. */
  | { readonly kind: 'name_taken' }
  | { readonly kind: 'last_admin' }
  | { readonly kind: 'not_admin' };

/** Gives a user a role under a name, or another role. The ledger has it before it counts. Invitations to the name end. */
export async function grantRole(
  ledger: LedgerWriter,
  grant: Operator & { readonly by: RoleChanger },
): Promise<RoleGrant> {
  const { name, userId, role, by } = grant;
  const { pool } = ledger;
  if (by.at === 'console' && !(await isAdmin(pool, by.name))) return { kind: 'not_admin' };
  const former = await findOperatorNamed(pool, name);
  const ownName = (await findNameOf(pool, userId)) ?? name;
  if ((former && former.userId !== userId) || ownName !== name) return { kind: 'name_taken' };
  if (former?.role === 'admin' && role !== 'admin') {
    const taken = await takeRoleOf(ledger, name, by, true);
    if (taken === 'last_admin' || taken === 'not_admin') return { kind: taken };
  }
  await dropInvitations(pool, 'name', name);
  await recordInConsole(ledger, {
    type: 'operator_role_granted',
    data: { name, user_id: userId, role, operator: by.name },
  });
  return (await setRole(pool, { name, userId, role })) ? { kind: 'granted' } : { kind: 'name_taken' };
}

export interface RoleWithdrawal {
  readonly kind: 'withdrawn' | 'unknown' | 'last_admin' | 'not_admin';
}

/**
 * Takes an operator's role away: their sessions, and invitations to them and by them, end immediately, in every process. The last admin
 * keeps it, except for a command, which can invite another one.
 */
export async function withdrawRole(
  ledger: LedgerWriter,
  { name, by }: { readonly name: string; readonly by: RoleChanger },
): Promise<RoleWithdrawal> {
  const { userId } = (await findOperatorNamed(ledger.pool, name)) ?? {};
  const taken = await takeRoleOf(ledger, name, by, by.at === 'console');
  if (taken === 'last_admin' || taken === 'not_admin') return { kind: taken };
  if (taken === 'unknown' || userId === undefined) return { kind: 'unknown' };
  await recordInConsole(ledger, {
    type: 'operator_role_withdrawn',
    data: { name, user_id: userId, operator: by.name },
  });
  await endOperatorSessions(ledger.pool, userId);
  await endUserSessions(ledger, await findSessionsOf(ledger.pool, userId));
  return { kind: 'withdrawn' };
}

/** Takes a role away, and with it the invitations to its operator and those that the operator made. */
async function takeRoleOf(
  { pool }: LedgerWriter,
  name: string,
  by: RoleChanger,
  keepsLast: boolean,
): Promise<TakenRole> {
  const taken = await takeRole(pool, { name, by: by.at === 'console' ? by.name : undefined, keepsLast });
  if (taken === 'last_admin' || taken === 'not_admin') return taken;
  await dropInvitations(pool, 'name', name);
  await dropInvitations(pool, 'invited_by', name);
  return taken;
}

/** Removes the second factors of an operator who has lost them; the next sign-in adds a new one. What they opened ends. */
export async function removeFactors(
  ledger: LedgerWriter,
  { name, by }: { readonly name: string; readonly by: RoleChanger },
): Promise<{ readonly kind: 'removed' | 'unknown' | 'not_admin' }> {
  if (by.at === 'console' && !(await isAdmin(ledger.pool, by.name))) return { kind: 'not_admin' };
  const { userId } = (await findOperatorNamed(ledger.pool, name)) ?? {};
  if (userId === undefined) return { kind: 'unknown' };
  // first, so that no session adds another one
  await endOperatorSessions(ledger.pool, userId);
  await recordInConsole(ledger, {
    type: 'operator_factors_removed',
    data: { name, user_id: userId, operator: by.name },
  });
  await deleteFactors(ledger.pool, userId);
  // again, so that no proof that came meanwhile outlives them
  await endOperatorSessions(ledger.pool, userId);
  return { kind: 'removed' };
}

import type pg from 'pg';
import type { LedgerEvent, RecordedEvent } from '../domain/events/event.ts';
import type { OperatorRole } from '../domain/identity/operator-role.ts';
import { findSessionsOf } from '../store/identity.ts';
import type { Lane } from '../store/lane.ts';
import {
  clearRole,
  countRole,
  deleteFactors,
  dropInvitations,
  endOperatorSessions,
  findNameOf,
  findOperatorNamed,
  setRole,
} from '../store/operators.ts';
import { readLatestEvents } from '../store/streams.ts';
import { endUserSessions } from './sessions.ts';

export interface OperatorLedger {
  readonly pool: pg.Pool;
  readonly lane: Lane;
}

/** The stream of who may use the console, and of what they do there. */
const stream = 'operator:console';

/** A person at the console. */
export interface Operator {
  /** What events call them. */
  readonly name: string;
  readonly userId: string;
  readonly role: OperatorRole;
}

export async function recordInConsole(
  { lane }: Pick<OperatorLedger, 'lane'>,
  event: LedgerEvent,
): Promise<void> {
  await lane.append({ stream, events: [event] });
}

/** What happened in the console, the latest first, before a version of its stream. */
export function readConsoleEvents(
  { pool }: Pick<OperatorLedger, 'pool'>,
  before: number | undefined,
  most: number,
): Promise<RecordedEvent[]> {
  return readLatestEvents(pool, stream, most, before);
}

/** Records that an operator asks for something, before it is done. */
export async function recordAction(
  ledger: Pick<OperatorLedger, 'lane'>,
  { name: operator, userId: user_id }: Operator,
  action: string,
  subject?: string,
): Promise<void> {
  const data = { operator, user_id, action, ...(subject !== undefined && { subject }) };
  await recordInConsole(ledger, { type: 'operator_acted', data });
}

export type RoleGrant =
  | { readonly kind: 'granted' }
  /** The name is another user's, or the user has another name: names are for ever. */
  | { readonly kind: 'name_taken' }
  | { readonly kind: 'last_admin' };

/** Gives a user a role under a name, or another role. The ledger has it before it counts. */
export async function grantRole(
  ledger: OperatorLedger,
  grant: { readonly name: string; readonly userId: string; readonly role: OperatorRole; readonly by: string },
): Promise<RoleGrant> {
  const { name, userId, role, by: operator } = grant;
  const former = await findOperatorNamed(ledger.pool, name);
  const ownName = (await findNameOf(ledger.pool, userId)) ?? name;
  if ((former && former.userId !== userId) || ownName !== name) return { kind: 'name_taken' };
  if (former?.role === 'admin' && role !== 'admin' && (await isLastAdmin(ledger)))
    return { kind: 'last_admin' };
  await recordInConsole(ledger, {
    type: 'operator_role_granted',
    data: { name, user_id: userId, role, operator },
  });
  return (await setRole(ledger.pool, { name, userId, role })) ? { kind: 'granted' } : { kind: 'name_taken' };
}

export type RoleWithdrawal =
  | { readonly kind: 'withdrawn' }
  | { readonly kind: 'unknown' }
  /** Somebody must be able to invite others. */
  | { readonly kind: 'last_admin' };

/**
 * Takes an operator's role away: their sessions end at once, in every process.
 * @param isLastAllowed also of the last admin: for the command, which can invite another one
 */
export async function withdrawRole(
  ledger: OperatorLedger,
  {
    name,
    by: operator,
    isLastAllowed = false,
  }: { readonly name: string; readonly by: string; readonly isLastAllowed?: boolean },
): Promise<RoleWithdrawal> {
  const former = await findOperatorNamed(ledger.pool, name);
  await dropInvitations(ledger.pool, name);
  if (former?.role === undefined || former.userId === undefined) return { kind: 'unknown' };
  if (former.role === 'admin' && !isLastAllowed && (await isLastAdmin(ledger))) return { kind: 'last_admin' };
  const { userId } = former;
  await clearRole(ledger.pool, name);
  await recordInConsole(ledger, {
    type: 'operator_role_withdrawn',
    data: { name, user_id: userId, operator },
  });
  await endOperatorSessions(ledger.pool, userId);
  await endUserSessions(ledger, await findSessionsOf(ledger.pool, userId));
  return { kind: 'withdrawn' };
}

async function isLastAdmin({ pool }: OperatorLedger): Promise<boolean> {
  return (await countRole(pool, 'admin')) < 2;
}

/** Removes the second factors of an operator who has lost them; the next sign-in adds a new one. False for an unknown name. */
export async function removeFactors(
  ledger: OperatorLedger,
  { name, by: operator }: { readonly name: string; readonly by: string },
): Promise<boolean> {
  const { userId } = (await findOperatorNamed(ledger.pool, name)) ?? {};
  if (userId === undefined) return false;
  await endOperatorSessions(ledger.pool, userId);
  await recordInConsole(ledger, {
    type: 'operator_factors_removed',
    data: { name, user_id: userId, operator },
  });
  await deleteFactors(ledger.pool, userId);
  return true;
}

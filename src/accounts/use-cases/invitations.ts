import { createHash, randomBytes } from 'node:crypto';
import type { OperatorRole } from '../../base/values/operator-role.ts';
import {
  addInvitation,
  dropInvitations,
  findInvitation,
  findOperatorNamed,
  type Invitation,
  takeInvitation,
} from '../store/operators.ts';
import { findUser } from '../store/identity.ts';
import { grantRole, recordInConsole, type RoleChanger, type RoleGrant } from './operators.ts';
import type { LedgerWriter } from '../../ledger/store/ledger.ts';

/** An invitation is valid for this long, and once. */
export const invitationHours = 72;

export type Invited =
  /** The token is in the link, and is returned only here. */
  { readonly kind: 'invited'; readonly token: string } | { readonly kind: 'name_taken' };

/**
 * Invites the owner of an e-mail address to become an operator. An earlier invitation of the name ends. Without a name's former user:
 * names are for ever.
 */
export async function inviteOperator(
  ledger: LedgerWriter,
  {
    name,
    email,
    role,
    by,
  }: {
    readonly name: string;
    readonly email: string;
    readonly role: OperatorRole;
    readonly by: RoleChanger;
  },
): Promise<Invited> {
  const address = email.toLowerCase();
  const former = await findOperatorNamed(ledger.pool, name);
  const owner = former?.userId === undefined ? undefined : await findUser(ledger.pool, former.userId);
  if (former && owner?.email !== address) return { kind: 'name_taken' };
  const token = randomBytes(32).toString('base64url');
  await recordInConsole(ledger, { type: 'operator_invited', data: { name, role, operator: by.name } });
  await dropInvitations(ledger.pool, 'name', name);
  await addInvitation(ledger.pool, {
    name,
    email: address,
    role,
    invitedBy: by.name,
    isByCommand: by.at === 'command',
    tokenHash: hashOf(token),
    hours: invitationHours,
  });
  return { kind: 'invited', token };
}

/** Where an invitation is accepted. */
export function invitationUrl(publicUrl: string, token: string): string {
  return `${publicUrl}/console/invitation?token=${token}`;
}

/** The invitation of a link; undefined if it was used, has expired or does not exist, or where its maker is no longer an admin. */
export async function readInvitation(
  { pool }: Pick<LedgerWriter, 'pool'>,
  token: string,
): Promise<Invitation | undefined> {
  return isToken(token) ? findInvitation(pool, hashOf(token)) : undefined;
}

export type Acceptance =
  | Exclude<RoleGrant, { readonly kind: 'not_admin' }>
  | { readonly kind: 'over' }
  /** The signed-in user has another address, or has not confirmed it. */
  | { readonly kind: 'other_user' };

/** Makes the user whom an invitation was sent to an operator, once. */
export async function acceptInvitation(
  ledger: LedgerWriter,
  userId: string,
  token: string,
): Promise<Acceptance> {
  const invitation = await readInvitation(ledger, token);
  if (!invitation) return { kind: 'over' };
  const user = await findUser(ledger.pool, userId);
  if (!user?.isEmailVerified || user.email !== invitation.email) return { kind: 'other_user' };
  if (!(await takeInvitation(ledger.pool, hashOf(token)))) return { kind: 'over' };
  const { name, role, invitedBy, isByCommand } = invitation;
  const by = { name: invitedBy, at: isByCommand ? 'command' : 'console' } as const;
  const grant = await grantRole(ledger, { name, userId, role, by });
  return grant.kind === 'not_admin' ? { kind: 'over' } : grant;
}

function isToken(text: string): boolean {
  return /^[\w-]{43}$/.test(text);
}

function hashOf(token: string): string {
  return createHash('sha256').update(`invitation:${token}`).digest('base64url');
}

import { sql } from 'kysely';
import type pg from 'pg';
import type { OperatorRole } from '../../base/values/operator-role.ts';
import { queriesOn } from '../../ledger/store/database.ts';
import { withoutNulls } from '../../ledger/store/expressions.ts';

const now = sql<Date>`tollbook.clock()`;

/** A person who has, or had, a role. */
export interface ListedOperator {
  readonly name: string;
  /** Undefined for one whose user was erased. */
  readonly userId: string | undefined;
  readonly email: string | undefined;
  /** Undefined once it was withdrawn. */
  readonly role: OperatorRole | undefined;
  readonly hasFactor: boolean;
}

/** Every operator there was, by name. */
export async function listOperators(pool: pg.Pool): Promise<ListedOperator[]> {
  const rows = await queriesOn(pool)
    .selectFrom('identity.operator as operator')
    .leftJoin('identity.user as person', 'person.id', 'operator.user_id')
    .select(({ exists, selectFrom }) => [
      'operator.name',
      'operator.user_id as userId',
      'operator.role',
      'person.email',
      exists(
        selectFrom('identity.operator_factor as factor')
          .select('factor_id')
          .whereRef('factor.user_id', '=', 'operator.user_id'),
      )
        .$castTo<boolean>()
        .as('hasFactor'),
    ])
    .orderBy('operator.name')
    .execute();
  return rows.map(withoutNulls);
}

/** The operator of a session. */
export interface OperatorOfUser {
  readonly name: string;
  readonly role: OperatorRole;
  /** Until when this session may use the console; undefined without a second factor. */
  readonly until: Date | undefined;
}

/** The operator who a user is, with the state of a session's own token; undefined for a user without a role. */
export async function findOperatorOf(
  pool: pg.Pool,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
  tokenHash: string | undefined,
): Promise<OperatorOfUser | undefined> {
  const row = await queriesOn(pool)
    .selectFrom('identity.operator as operator')
    .leftJoin('identity.operator_session as proven', (join) =>
      join
        .on('proven.session_id', '=', sessionId)
        .on('proven.token', '=', tokenHash ?? '')
        .on('proven.expires_at', '>', now),
    )
    .select(['operator.name', 'operator.role', 'proven.expires_at'])
    .where('operator.user_id', '=', userId)
    .where('operator.role', 'is not', null)
    .executeTakeFirst();
  if (!row?.role) return undefined;
  return { name: row.name, role: row.role, until: row.expires_at ?? undefined };
}

/** The user and role of an operator's name; undefined for a name that no operator has had. */
export async function findOperatorNamed(
  pool: pg.Pool,
  name: string,
): Promise<{ readonly userId: string | undefined; readonly role: OperatorRole | undefined } | undefined> {
  const row = await queriesOn(pool)
    .selectFrom('identity.operator')
    .select(['user_id as userId', 'role'])
    .where('name', '=', name)
    .executeTakeFirst();
  return row && withoutNulls(row);
}

/** The name that a user has, or had, as an operator. */
export async function findNameOf(pool: pg.Pool, userId: string): Promise<string | undefined> {
  const row = await queriesOn(pool)
    .selectFrom('identity.operator')
    .select('name')
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row?.name;
}

/** Gives a user a name and a role, or another role. False if the name is another user's, or the user has another name. */
export async function setRole(
  pool: pg.Pool,
  { name, userId, role }: { readonly name: string; readonly userId: string; readonly role: OperatorRole },
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await queriesOn(pool)
    .insertInto('identity.operator')
    .values({ name, user_id: userId, role, created_at: now })
    .onConflict((on) =>
      on.column('name').doUpdateSet({ role }).where('identity.operator.user_id', '=', userId),
    )
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows === 1n;
}

/** Whether an operator of this name is an admin, and not disabled. */
export async function isAdmin(pool: pg.Pool, name: string): Promise<boolean> {
  const { is } = await queriesOn(pool)
    .selectNoFrom(sql<boolean>`identity.is_admin(${name})`.as('is'))
    .executeTakeFirstOrThrow();
  return is;
}

/** What came of taking a role away. */
export type TakenRole =
  | 'taken'
  /** There is no operator of this name with a role. */
  | 'unknown'
  /** The requester is no longer an admin. */
  | 'not_admin'
  /** Somebody must be able to invite others. */
  | 'last_admin';

/**
 * Takes an operator's role away; no session of theirs opens the console from then on, in any process. Of several simultaneous calls, each
 * is decided when the one before has taken effect.
 * @param by an admin; undefined: a command, which needs no role
 */
export async function takeRole(
  pool: pg.Pool,
  {
    name,
    by,
    keepsLast,
  }: { readonly name: string; readonly by: string | undefined; readonly keepsLast: boolean },
): Promise<TakenRole> {
  const { taken } = await queriesOn(pool)
    .selectNoFrom(sql<TakenRole>`identity.take_role(${name}, ${by ?? null}, ${keepsLast})`.as('taken'))
    .executeTakeFirstOrThrow();
  return taken;
}

/** Lets a session use the console, with a separate token, given as its hash. */
export async function startOperatorSession(
  pool: pg.Pool,
  session: { readonly tokenHash: string; readonly sessionId: string; readonly hours: number },
): Promise<void> {
  await queriesOn(pool)
    .insertInto('identity.operator_session')
    .values({
      token: session.tokenHash,
      session_id: session.sessionId,
      expires_at: sql<Date>`tollbook.clock() + ${session.hours} * interval '1 hour'`,
    })
    .execute();
}

/** Ends the use of the console by a user's sessions; the sessions themselves remain. */
export async function endOperatorSessions(pool: pg.Pool, userId: string): Promise<void> {
  const db = queriesOn(pool);
  const own = db.selectFrom('identity.session').select('id').where('user_id', '=', userId);
  await db.deleteFrom('identity.operator_session').where('session_id', 'in', own).execute();
}

/** The proof that an operator gives in addition to the first factor. */
export interface Factor {
  readonly factorId: string;
  readonly kind: 'totp' | 'passkey';
  readonly credentialId: string | undefined;
  readonly key: Buffer;
  readonly lastStep: number;
  readonly createdAt: Date;
}

export async function listFactors(pool: pg.Pool, userId: string): Promise<Factor[]> {
  const rows = await queriesOn(pool)
    .selectFrom('identity.operator_factor')
    .select([
      'factor_id as factorId',
      'kind',
      'credential_id as credentialId',
      'key',
      'last_step as lastStep',
      'created_at as createdAt',
    ])
    .where('user_id', '=', userId)
    .orderBy('created_at')
    .execute();
  return rows.map(withoutNulls);
}

/**
 * Adds a second factor.
 * @param within the session that asks: nothing is added, and false returned, once it may not use the console any more
 */
export async function addFactor(
  pool: pg.Pool,
  factor: Omit<Factor, 'factorId' | 'createdAt'> & { readonly userId: string },
  within?: string,
): Promise<boolean> {
  const db = queriesOn(pool);
  const { userId, kind, credentialId = null, key, lastStep } = factor;
  const row = {
    factor_id: sql<string>`gen_random_uuid()`,
    user_id: userId,
    kind,
    credential_id: credentialId,
    key,
    last_step: lastStep,
    created_at: now,
  };
  if (within === undefined) {
    await db.insertInto('identity.operator_factor').values(row).execute();
    return true;
  }
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('identity.operator_factor')
    .columns(['factor_id', 'user_id', 'kind', 'credential_id', 'key', 'last_step', 'created_at'])
    .expression((from) =>
      // locked: it ends before this, or after what is added can be removed
      from
        .selectFrom('identity.operator_session')
        .select([
          row.factor_id.as('factor_id'),
          sql<string>`${userId}::uuid`.as('user_id'),
          sql<'totp' | 'passkey'>`${kind}::text`.as('kind'),
          sql<string | null>`${credentialId}::text`.as('credential_id'),
          sql<Buffer>`${key}::bytea`.as('key'),
          sql<number>`${lastStep}::bigint`.as('last_step'),
          now.as('created_at'),
        ])
        .where('session_id', '=', within)
        .where('expires_at', '>', now)
        .limit(1)
        .forShare(),
    )
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows === 1n;
}

/** Uses up a step of a factor, and those before it. False if it was used before: of two simultaneous calls one is true. */
export async function takeStep(pool: pg.Pool, factorId: string, step: number, key: Buffer): Promise<boolean> {
  const { numUpdatedRows } = await queriesOn(pool)
    .updateTable('identity.operator_factor')
    .set({ last_step: step, key })
    .where('factor_id', '=', factorId)
    .where('last_step', '<', step)
    .executeTakeFirstOrThrow();
  return numUpdatedRows === 1n;
}

/** Deletes the second factors of a user and the codes in their place. */
export async function deleteFactors(pool: pg.Pool, userId: string): Promise<void> {
  const db = queriesOn(pool);
  await db.deleteFrom('identity.operator_recovery_code').where('user_id', '=', userId).execute();
  await db.deleteFrom('identity.operator_factor').where('user_id', '=', userId).execute();
}

/** Replaces the recovery codes of a user, given as hashes. */
export async function putRecoveryCodes(
  pool: pg.Pool,
  userId: string,
  hashes: readonly string[],
): Promise<void> {
  const db = queriesOn(pool);
  await db.deleteFrom('identity.operator_recovery_code').where('user_id', '=', userId).execute();
  await db
    .insertInto('identity.operator_recovery_code')
    .values(hashes.map((hash) => ({ user_id: userId, hash })))
    .execute();
}

/** Uses up a recovery code, given as its hash; false if the user has no such code. */
export async function takeRecoveryCode(pool: pg.Pool, userId: string, hash: string): Promise<boolean> {
  const { numDeletedRows } = await queriesOn(pool)
    .deleteFrom('identity.operator_recovery_code')
    .where('user_id', '=', userId)
    .where('hash', '=', hash)
    .executeTakeFirstOrThrow();
  return numDeletedRows === 1n;
}

export interface Invitation {
  readonly name: string;
  readonly email: string;
  readonly role: OperatorRole;
  readonly invitedBy: string;
  /** A command made it, not a person at the console. */
  readonly isByCommand: boolean;
}

export async function addInvitation(
  pool: pg.Pool,
  {
    name,
    email,
    role,
    invitedBy,
    isByCommand,
    tokenHash,
    hours,
  }: Invitation & {
    readonly tokenHash: string;
    readonly hours: number;
  },
): Promise<void> {
  await queriesOn(pool)
    .insertInto('identity.operator_invitation')
    .values({
      invitation_id: sql<string>`gen_random_uuid()`,
      token: tokenHash,
      name,
      email,
      role,
      invited_by: invitedBy,
      by_command: isByCommand,
      expires_at: sql<Date>`tollbook.clock() + ${hours} * interval '1 hour'`,
      accepted_at: null,
    })
    .execute();
}

/** Whether it can be accepted now: it counts while it was made by a command, or by who is an admin now. */
const isOpen = sql<boolean>`accepted_at is null and expires_at > tollbook.clock() and (by_command or identity.is_admin(invited_by))`;

/** An invitation that can be accepted now, by the hash of its token. */
export async function findInvitation(pool: pg.Pool, tokenHash: string): Promise<Invitation | undefined> {
  return queriesOn(pool)
    .selectFrom('identity.operator_invitation')
    .select(['name', 'email', 'role', 'invited_by as invitedBy', 'by_command as isByCommand'])
    .where('token', '=', tokenHash)
    .where(isOpen)
    .executeTakeFirst();
}

/** Uses an invitation up. False if it cannot be accepted any more: of two simultaneous calls one is true. */
export async function takeInvitation(pool: pg.Pool, tokenHash: string): Promise<boolean> {
  const { numUpdatedRows } = await queriesOn(pool)
    .updateTable('identity.operator_invitation')
    .set({ accepted_at: now })
    .where('token', '=', tokenHash)
    .where(isOpen)
    .executeTakeFirstOrThrow();
  return numUpdatedRows === 1n;
}

/** Ends the invitations to a name, or those that an operator made, that were not accepted. */
export async function dropInvitations(
  pool: pg.Pool,
  whose: 'name' | 'invited_by',
  name: string,
): Promise<void> {
  await queriesOn(pool)
    .deleteFrom('identity.operator_invitation')
    .where(whose, '=', name)
    .where('accepted_at', 'is', null)
    .execute();
}

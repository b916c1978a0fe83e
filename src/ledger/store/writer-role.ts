import { type Kysely, sql } from 'kysely';
import pg from 'pg';
import { isDenied, readerRole, writerRole } from './database.ts';
import { openSession } from './session.ts';

/**
 * The role as which gateways work on this database: `tollbook_writer_` and the database's name. Roles belong to the whole
 * server, so one name for all databases would let the gateway of one write in another.
 */
const ownName = roleName(writerRole);

/** A role's name with the database's after it, as an SQL expression. */
function roleName(general: string): string {
  return `'${general}_' || case when octet_length(current_database()) < 48 then current_database()
  else md5(current_database()) end`;
}

/** The roles that may append here. */
const granted = `select role.oid, role.rolname as name from pg_proc, aclexplode(proacl) acl join pg_roles role on role.oid = acl.grantee
  where pg_proc.oid = to_regproc('tollbook.append') and (role.rolname = '${writerRole}' or role.rolname like '${writerRole}\\_%')`;

/** From PostgreSQL 16 on a member may be one that cannot work as the role: so is the user that created it. */
function mayWorkAs(oid: string): string {
  return `pg_has_role(current_user, ${oid}, case when current_setting('server_version_num')::int >= 160000 then 'SET' else 'MEMBER' end)`;
}

/** The writer role, if this user can work as it; undefined if the database does not allow roles. */
export async function grantedWriterRole(url: string): Promise<string | undefined> {
  const client = await openSession({ url });
  try {
    const { rows } = await client.query<{ name: string }>(
      `select name from (${granted}) writer where ${mayWorkAs('oid')} order by name limit 1`,
    );
    return rows[0]?.name;
  } finally {
    await client.end();
  }
}

/** Whether the user of these connections may append to the ledger. */
export async function mayAppend(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query<{ may: boolean | null }>(
    `select has_function_privilege(to_regproc('tollbook.append')::oid, 'execute') as may`,
  );
  return rows[0]?.may === true;
}

/** The roles that may append to this database. */
export async function writerRolesOf(db: Kysely<unknown>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`${sql.raw(granted)}`.execute(db);
  return rows.map(({ name }) => name);
}

/** The roles that may read this database. */
export async function readerRolesOf(db: Kysely<unknown>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select role.rolname as name from pg_namespace, aclexplode(nspacl) acl join pg_roles role on role.oid = acl.grantee
    where nspname = 'tollbook' and (role.rolname = ${readerRole} or role.rolname like ${`${readerRole}\\_%`})`.execute(
    db,
  );
  return rows.map(({ name }) => name);
}

/** What an administrator has to run, if this user may not do it; it ends with a semicolon. */
interface RoleNeeds {
  readonly role: string;
  readonly missingSql?: string;
}

/**
 * Creates the role, by default the database's own, and makes this user a member of it, if it may. Nothing is tried that this
 * user has no right to.
 */
export async function createWriterRole(
  db: Kysely<unknown>,
  given?: string,
): Promise<RoleNeeds & { readonly exists: boolean }> {
  const { rows } = await sql<{ role: string; user: string; mayCreate: boolean }>`
    select ${given === undefined ? sql.raw(ownName) : given} as role, current_user as user,
      rolsuper or rolcreaterole as "mayCreate" from pg_roles where rolname = current_user`.execute(db);
  const { role = '', user = '', mayCreate = false } = rows[0] ?? {};
  const grant = `grant ${pg.escapeIdentifier(role)} to ${pg.escapeIdentifier(user)};`;
  if (!(await exists(db, role))) {
    if (!mayCreate)
      return {
        role,
        exists: false,
        missingSql: `create role ${pg.escapeIdentifier(role)} nologin; ${grant}`,
      };
    await createRole(db, role);
  }
  return { role, exists: true, ...((await joinRole(db, role)) ? {} : { missingSql: grant }) };
}

/**
 * Creates the role that may only read, by default the database's own, if this user may. It gets no member.
 * Returns its name; undefined if it does not exist.
 */
export async function createReaderRole(db: Kysely<unknown>, given?: string): Promise<string | undefined> {
  const { rows } = await sql<{ role: string; mayCreate: boolean }>`
    select ${given === undefined ? sql.raw(roleName(readerRole)) : given} as role, rolsuper or rolcreaterole as "mayCreate"
      from pg_roles where rolname = current_user`.execute(db);
  const { role = '', mayCreate = false } = rows[0] ?? {};
  if (await exists(db, role)) return role;
  if (!mayCreate) return undefined;
  await createRole(db, role);
  return role;
}

async function createRole(db: Kysely<unknown>, role: string): Promise<void> {
  try {
    await sql`create role ${sql.id(role)} nologin`.execute(db);
  } catch (error) {
    // another run may have created it meanwhile
    if (!(await exists(db, role))) throw error;
  }
}

async function exists(db: Kysely<unknown>, name: string): Promise<boolean> {
  const { rows } = await sql`select from pg_roles where rolname = ${name}`.execute(db);
  return rows.length > 0;
}

/** Whether this user can work as the role. */
async function joinRole(db: Kysely<unknown>, name: string): Promise<boolean> {
  const { rows } = await sql<{ member: boolean }>`
    select ${sql.raw(mayWorkAs(`(select oid from pg_roles where rolname = ${pg.escapeLiteral(name)})`))} as member`.execute(
    db,
  );
  if (rows[0]?.member) return true;
  try {
    await sql`grant ${sql.id(name)} to current_user`.execute(db);
    return true;
  } catch (error) {
    if (!isDenied(error)) throw error;
    return false;
  }
}

/** Takes all rights in our schemas from a role. */
export async function revokeAll(db: Kysely<unknown>, role: string): Promise<void> {
  for (const objects of ['all functions in', 'all tables in', ''])
    await sql`revoke all on ${sql.raw(objects)} schema tollbook, identity from ${sql.id(role)}`.execute(db);
}

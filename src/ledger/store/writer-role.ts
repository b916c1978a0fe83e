import { type Kysely, sql } from 'kysely';
import pg from 'pg';
import { isDenied, readerRole, writerRole } from './database.ts';
import { ownSchemas } from './schema-objects.ts';
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
    return await findWriterRole(client);
  } finally {
    await client.end();
  }
}

/** The same for the user of a connection. */
export async function findWriterRole(
  connection: Pick<pg.ClientBase | pg.Pool, 'query'>,
): Promise<string | undefined> {
  const { rows } = await connection.query<{ name: string }>(
    `select name from (${granted}) writer where ${mayWorkAs('oid')} order by name limit 1`,
  );
  return rows[0]?.name;
}

/** Whether the user of these connections may append to the ledger. */
export async function mayAppend(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query<{ may: boolean | null }>(
    `select has_function_privilege(to_regproc('tollbook.append')::oid, 'execute') as may`,
  );
  return rows[0]?.may === true;
}

/** The roles that may append to this database, or read it. */
export async function grantedRoles(db: Kysely<unknown>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from (${sql.raw(granted)}) writer
    union select role.rolname from pg_namespace, aclexplode(nspacl) acl join pg_roles role on role.oid = acl.grantee
    where nspname = 'tollbook' and (role.rolname = ${readerRole} or role.rolname like ${`${readerRole}\\_%`})`.execute(
    db,
  );
  return rows.map(({ name }) => name);
}

/** The roles of one database that get rights; undefined: this user, the owner, who has them anyway. */
export interface GrantedRoles {
  readonly writer: string | undefined;
  readonly reader: string | undefined;
}

/** SQL text with the roles of one database in place of their general names. */
export function rolesNamed(text: string, { writer, reader }: GrantedRoles): string {
  return roleNamed(roleNamed(text, writerRole, writer), readerRole, reader);
}

function roleNamed(text: string, general: string, role: string | undefined): string {
  const name = role === undefined ? 'current_user' : pg.escapeIdentifier(role);
  return text.replaceAll(new RegExp(`\\b${general}\\b`, 'g'), () => name);
}

/** Other roles than the database's own. */
export interface RoleOptions {
  /** For gateways. */
  readonly role?: string;
  readonly readerRole?: string;
}

interface Roles {
  readonly role: string;
  readonly readerRole: string;
  readonly user: string;
  readonly mayCreate: boolean;
}

async function readRoles(db: Kysely<unknown>, { role, readerRole: reader }: RoleOptions): Promise<Roles> {
  const { rows } = await sql<Roles>`
    select ${role ?? sql.raw(ownName)} as role, ${reader ?? sql.raw(roleName(readerRole))} as "readerRole", current_user as user,
      rolsuper or rolcreaterole as "mayCreate" from pg_roles where rolname = current_user`.execute(db);
  return rows[0] ?? { role: '', readerRole: '', user: '', mayCreate: false };
}

/** The roles that exist. */
export async function findRoles(db: Kysely<unknown>, options: RoleOptions): Promise<GrantedRoles> {
  const { role, readerRole: reader } = await readRoles(db, options);
  return {
    writer: (await exists(db, role)) ? role : undefined,
    reader: (await exists(db, reader)) ? reader : undefined,
  };
}

/**
 * Creates the roles if they are missing, and makes this user a member of the writer role, if it may. Nothing is tried that this user has no
 * right to. Returns a sentence for the operator if the writer role then is not usable.
 */
export async function createRoles(db: Kysely<unknown>, options: RoleOptions): Promise<string | undefined> {
  const { role, readerRole: reader, user, mayCreate } = await readRoles(db, options);
  if (mayCreate) for (const name of [role, reader]) if (!(await exists(db, name))) await createRole(db, name);
  const isThere = await exists(db, role);
  if (isThere && (await joinRole(db, role))) return undefined;
  const create = isThere ? '' : `create role ${pg.escapeIdentifier(role)} nologin; `;
  const then = isThere ? 'restart the gateways' : 'run `tollbook migrate` again and restart the gateways';
  return (
    `This database user may not ${isThere ? 'work as' : 'create'} the role ${role}, so gateways work with the rights of their user: ` +
    'the database does not keep them from changing the ledger. Have an administrator run: ' +
    `${create}grant ${pg.escapeIdentifier(role)} to ${pg.escapeIdentifier(user)}; Then ${then}.`
  );
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
    await sql`revoke all on ${sql.raw(objects)} schema ${sql.raw(ownSchemas.join(', '))} from ${sql.id(role)}`.execute(
      db,
    );
}

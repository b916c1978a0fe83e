import { type Kysely, sql } from 'kysely';
import pg from 'pg';
import { sessionConfig, writerRole } from './database.ts';

/**
 * The role as which gateways work on this database: `tollbook_writer_` and the database's name. Roles belong to the whole
 * server, so one name for all databases would let the gateway of one write in another.
 */
const ownName = `'${writerRole}_' || case when octet_length(current_database()) < 48 then current_database()
  else md5(current_database()) end`;

/** The roles that may append here. */
const granted = `select role.oid, role.rolname as name from pg_proc, aclexplode(proacl) acl join pg_roles role on role.oid = acl.grantee
  where pg_proc.oid = to_regproc('tollbook.append') and (role.rolname = '${writerRole}' or role.rolname like '${writerRole}\\_%')`;

/** The writer role, if this user is a member of it; undefined where the database does not allow roles. */
export async function grantedWriterRole(url: string): Promise<string | undefined> {
  const client = new pg.Client(sessionConfig({ url }));
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      `select name from (${granted}) writer where pg_has_role(current_user, oid, 'MEMBER') order by name limit 1`,
    );
    return rows[0]?.name;
  } finally {
    await client.end();
  }
}

/** The roles that may append to this database. */
export async function writerRolesOf(db: Kysely<unknown>): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`${sql.raw(granted)}`.execute(db);
  return rows.map(({ name }) => name);
}

/**
 * Creates the role, by default the database's own, and makes this user a member of it, where it may. Returns its name.
 * Throws where the role does not exist and this user must not create roles.
 */
export async function createWriterRole(db: Kysely<unknown>, given?: string): Promise<string> {
  const { rows } = await sql<{ name: string; user: string }>`
    select ${given === undefined ? sql.raw(ownName) : given} as name, current_user as user`.execute(db);
  const { name = '', user = '' } = rows[0] ?? {};
  if (!(await exists(db, name))) {
    try {
      await sql`create role ${sql.id(name)} nologin`.execute(db);
    } catch (error) {
      // another run may have created it meanwhile
      if (isDenied(error))
        throw new Error(
          `The database user ${user} may not create the role ${name}. Nothing was changed. Have an administrator run: ` +
            `create role ${pg.escapeIdentifier(name)} nologin; grant ${pg.escapeIdentifier(name)} to ${pg.escapeIdentifier(user)};`,
          { cause: error },
        );
      if (!(await exists(db, name))) throw error;
    }
  }
  await joinRole(db, name);
  return name;
}

async function exists(db: Kysely<unknown>, name: string): Promise<boolean> {
  const { rows } = await sql`select from pg_roles where rolname = ${name}`.execute(db);
  return rows.length > 0;
}

/** A gateway whose user is no member works with the owner's rights, and says so. */
async function joinRole(db: Kysely<unknown>, name: string): Promise<void> {
  const { rows } = await sql<{ member: boolean }>`
    select pg_has_role(current_user, ${name}, 'MEMBER') as member`.execute(db);
  if (rows[0]?.member) return;
  try {
    await sql`grant ${sql.id(name)} to current_user`.execute(db);
  } catch (error) {
    if (!isDenied(error)) throw error;
  }
}

/** Takes all rights in our schemas from a role. */
export async function revokeAll(db: Kysely<unknown>, role: string): Promise<void> {
  for (const objects of ['all functions in', 'all tables in', ''])
    await sql`revoke all on ${sql.raw(objects)} schema tollbook, identity from ${sql.id(role)}`.execute(db);
}

function isDenied(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '42501';
}

import type { TestDatabase } from './database.ts';

/** Every value of every row of a database, as whoever holds a dump reads it. */
export interface DatabaseDump {
  /** All of it: texts, and bytes as they are. */
  readonly text: string;
  /** Short values that could be a secret or a key. */
  readonly values: ReadonlySet<string | Buffer>;
}

export async function dumpDatabase(database: TestDatabase): Promise<DatabaseDump> {
  const texts: string[] = [];
  const strings = new Set<string>();
  const bytes = new Map<string, Buffer>();
  const visit = (value: unknown): void => {
    if (Buffer.isBuffer(value)) {
      texts.push(value.toString('latin1'));
      if (value.length >= 16 && value.length <= 64) bytes.set(value.toString('hex'), value);
    } else if (typeof value === 'string') {
      texts.push(value);
      if (/^[\x21-\x7e]{16,300}$/.test(value)) strings.add(value);
    } else if (value instanceof Date) texts.push(value.toISOString());
    else if (typeof value === 'object' && value !== null)
      for (const inner of Object.values(value)) visit(inner);
    else texts.push(String(value));
  };
  await database.asOwner(async (owner) => {
    const { rows: tables } = await owner.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
        where schemaname not in ('pg_catalog', 'information_schema')`,
    );
    for (const { name } of tables) {
      const { rows } = await owner.query<Record<string, unknown>>(`select * from ${name}`);
      for (const row of rows) visit(row);
    }
  });
  return { text: texts.join('\n'), values: new Set<string | Buffer>([...strings, ...bytes.values()]) };
}

/** The ways in which a value of a dump can be written as a token. */
export function spellings(value: string | Buffer): readonly string[] {
  if (typeof value === 'string') return [value];
  return [value.toString('base64url'), value.toString('hex')];
}

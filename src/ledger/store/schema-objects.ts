import { type Kysely, sql } from 'kysely';

/** The schemas that the migrations make. */
export const ownSchemas = ['tollbook', 'identity', 'audit'];

interface SchemaObject {
  /** Its table; empty for tables, functions and views. */
  readonly owner: string;
  /** With its kind, such as `column tollbook.lane.seq`. */
  readonly name: string;
  readonly definition: string;
}

/**
 * Tables with their columns, constraints, indexes and triggers, then functions, then views: those of other schemas too, since `migrate` drops
 * what others have built on its views.
 */
export async function readSchemaObjects(db: Kysely<unknown>): Promise<SchemaObject[]> {
  const { rows } = await sql<SchemaObject>`
    with own_table as (
      select oid, oid::regclass::text as name from pg_class
      where relkind = 'r' and relnamespace::regnamespace::text = any (${ownSchemas})
    ), object as (
      select 1 as kind, '' as owner, 'table ' || name as name, '' as definition from own_table
      union all select 2, 'table ' || t.name, format('column %s.%I', t.name, attname),
        concat_ws(' ', format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid))
        from own_table t join pg_attribute on attrelid = t.oid and attnum > 0 and not attisdropped
        left join pg_attrdef on adrelid = attrelid and adnum = attnum
      union all select 3, 'table ' || t.name, format('constraint %I of %s', conname, t.name), pg_get_constraintdef(pg_constraint.oid)
        from own_table t join pg_constraint on conrelid = t.oid and contype <> 'n'
      union all select 4, 'table ' || t.name, format('index %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
        from own_table t join pg_index on indrelid = t.oid
        where not exists (select from pg_constraint where conindid = indexrelid)
      union all select 5, 'table ' || t.name, format('trigger %I of %s', tgname, t.name), pg_get_triggerdef(pg_trigger.oid)
        from own_table t join pg_trigger on tgrelid = t.oid and not tgisinternal
      union all select 6, '', format('function %s', p.oid::regprocedure), pg_get_functiondef(p.oid)
        from pg_proc p where pronamespace::regnamespace::text = any (${ownSchemas})
      union all select 7, '', format('view %s.%I', relnamespace::regnamespace, relname), pg_get_viewdef(oid)
        from pg_class where relkind in ('v', 'm') and relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
    )
    select owner, name, definition from object order by kind, name collate "C"`.execute(db);
  return rows;
}

/** One line for each difference, such as `drop function tollbook.f(integer)`. Parts of a table that comes or goes are not listed. */
export function describeChanges(before: readonly SchemaObject[], after: readonly SchemaObject[]): string[] {
  const [old, now] = [byName(before), byName(after)];
  return [
    ...before
      .filter(({ name, owner }) => !now.has(name) && (owner === '' || now.has(owner)))
      .map(({ name }) => `drop ${name}`),
    ...after
      .filter(({ name, owner }) => !old.has(name) && (owner === '' || old.has(owner)))
      .map(({ name }) => `create ${name}`),
    ...after
      .filter(({ name, definition }) => (old.get(name)?.definition ?? definition) !== definition)
      .map(({ name }) => `replace ${name}`),
  ];
}

function byName(objects: readonly SchemaObject[]): ReadonlyMap<string, SchemaObject> {
  return new Map(objects.map((object) => [object.name, object]));
}

/** A column as PostgreSQL names its type; `Value`: the driver's type for it. */
export interface Column<Value> {
  readonly type: string;
  readonly isNullable: boolean;
  /** For the type only. */
  readonly value?: Value;
}

export const smallint: Column<number> = { type: 'smallint', isNullable: false };
export const int: Column<number> = { type: 'integer', isNullable: false };
/** Argument of functions only. */
export const ints: Column<number[]> = { type: 'integer[]', isNullable: false };
export const bigint: Column<number> = { type: 'bigint', isNullable: false };
export const bigints: Column<string[]> = { type: 'bigint[]', isNullable: false };
/** Read as its decimal text: no number could hold it. */
export const numeric: Column<string> = { type: 'numeric', isNullable: false };
export const float: Column<number> = { type: 'double precision', isNullable: false };
export const boolean: Column<boolean> = { type: 'boolean', isNullable: false };
export const text: Column<string> = { type: 'text', isNullable: false };
export const texts: Column<string[]> = { type: 'text[]', isNullable: false };
export const uuid: Column<string> = { type: 'uuid', isNullable: false };
export const uuids: Column<string[]> = { type: 'uuid[]', isNullable: false };
export const bytea: Column<Buffer> = { type: 'bytea', isNullable: false };
export const json: Column<unknown> = { type: 'json', isNullable: false };
export const timestamp: Column<Date> = { type: 'timestamp with time zone', isNullable: false };
/** What a function without a result returns. */
export const nothing: Column<void> = { type: 'void', isNullable: false };
export const date: Column<Date> = { type: 'date', isNullable: false };

export function oneOf<Value extends string>(..._values: readonly Value[]): Column<Value> {
  return { type: 'text', isNullable: false };
}

export function nullable<Value>({ type }: Column<Value>): Column<Value | null> {
  return { type, isNullable: true };
}

/** What the driver returns for a column. */
export type ValueOf<C> = C extends Column<infer Value> ? Value : never;

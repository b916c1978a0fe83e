import { type Expression, type RawBuilder, sql } from 'kysely';

/** A time as RFC 3339 UTC in milliseconds. */
export function time<Time extends Date | null>(
  column: Expression<Time>,
): RawBuilder<Time extends Date ? string : null> {
  return sql`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

/**
 * The quote of the payment that an event started or recovered: no other row repeats it.
 * @param seq with its table's name: alone it would be the event's own
 */
export function quoteOf(seq: Expression<number>): RawBuilder<string> {
  return sql`(select tollbook.stream_name(event.stream) from tollbook.event where event.lane_id = 1 and event.seq = ${seq})`;
}

/** The key of a stream, by which events and claims are found. */
export function streamKey(stream: string): RawBuilder<Buffer> {
  return sql`tollbook.stream_key(${stream})`;
}

/**
 * Whether a row of `tollbook.event` is of a stream whose name begins so.
 * @param beginning ends with a colon: the character after it ends the range of these streams
 */
export function isOfStreams(beginning: string): RawBuilder<boolean> {
  const end = `${beginning.slice(0, -1)};`;
  return sql`(event.stream >= ${streamKey(beginning)} and event.stream < ${streamKey(end)})`;
}

/** The stream of this key. */
export function streamName(key: Expression<Buffer>): RawBuilder<string> {
  return sql`tollbook.stream_name(${key})`;
}

/** The leaf of the event of a query on `tollbook.event`, put together of its columns: its bytes. */
export const leafBytes: RawBuilder<Buffer> = sql`tollbook.leaf(event)`;

/** The same as text, to be decoded: half the bytes on the wire. */
export const leafText: RawBuilder<string> = sql`tollbook.leaf_text(event)`;

/** An address or a transaction, with `0x`. */
export function hexText<Bytes extends Buffer | null>(
  column: Expression<Bytes>,
): RawBuilder<Bytes extends Buffer ? string : null> {
  return sql`tollbook.hex_text(${column})`;
}

/** The bytes of an address or a transaction, in any case of its digits. */
export function hexBytes(text: string): RawBuilder<Buffer> {
  return sql`tollbook.hex_bytes(${text})`;
}

/** Bytes in hexadecimal, without `0x`. */
export function hex(column: Expression<Buffer>): RawBuilder<string> {
  return sql`encode(${column}, 'hex')`;
}

/** A row that has undefined for null. */
export function withoutNulls<Row extends object>(
  row: Row,
): { [C in keyof Row]: null extends Row[C] ? Exclude<Row[C], null> | undefined : Row[C] } {
  const known = Object.entries(row).map(([name, value]) => [name, value ?? undefined]);
  return Object.fromEntries(known) as ReturnType<typeof withoutNulls<Row>>;
}

/** Conditions without those whose value is undefined, for `and()`. */
export function defined<Conditions extends object>(
  conditions: Conditions,
): { [Column in keyof Conditions]?: Exclude<Conditions[Column], undefined> } {
  return Object.fromEntries(Object.entries(conditions).filter(([, value]) => value !== undefined)) as {
    [Column in keyof Conditions]?: Exclude<Conditions[Column], undefined>;
  };
}

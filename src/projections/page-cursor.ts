import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Where a list goes on: a place, and a mark that only this database's key makes. A cursor of another database would point
 * at other rows, and is told from its own.
 */
export function makeCursor(key: Buffer, list: string, place: number): string {
  return `${place}-${markOf(key, list, place)}`;
}

/** The place; undefined for a cursor that was not made here, for this list. */
export function readCursor(key: Buffer, list: string, cursor: string): number | undefined {
  const match = /^(0|[1-9]\d{0,15})-([\w-]{16})$/.exec(cursor);
  const place = Number(match?.[1]);
  if (!match || !Number.isSafeInteger(place)) return undefined;
  const [given, own] = [Buffer.from(match[2] ?? ''), Buffer.from(markOf(key, list, place))];
  return given.length === own.length && timingSafeEqual(given, own) ? place : undefined;
}

function markOf(key: Buffer, list: string, place: number): string {
  return createHmac('sha256', key).update(`cursor:${list}:${place}`).digest('base64url').slice(0, 16);
}

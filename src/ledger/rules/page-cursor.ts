import { createHmac } from 'node:crypto';
import { areEqualSecrets } from '../../base/values/equal-secrets.ts';

/** Base64url: 132 bits, the least whole number of characters that has 128. */
const macChars = 22;

/**
 * The cursor of the next page: a place in the list and an HMAC of it with this database's key. The HMAC refuses a cursor of
 * another database, which would point at other rows.
 */
export function makeCursor(key: Buffer, list: string, place: number): string {
  return `${place}-${macOf(key, list, place)}`;
}

/** The place; undefined for a cursor of another list or another database. */
export function readCursor(key: Buffer, list: string, cursor: string): number | undefined {
  const match = /^(0|[1-9]\d{0,15})-([\w-]{22})$/.exec(cursor);
  const place = Number(match?.[1]);
  if (!match || !Number.isSafeInteger(place)) return undefined;
  return areEqualSecrets(match[2] ?? '', macOf(key, list, place)) ? place : undefined;
}

function macOf(key: Buffer, list: string, place: number): string {
  return createHmac('sha256', key).update(`cursor:${list}:${place}`).digest('base64url').slice(0, macChars);
}

import { randomUUID } from 'node:crypto';

/**
 * A UUID of version 7: its milliseconds come first, so that new ones are neighbours in an index. Random ones each touch another page,
 * which the database writes whole into its WAL after every checkpoint.
 */
export function orderedUuid(nowMs = Date.now()): string {
  const time = nowMs.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

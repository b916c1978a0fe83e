import { isCursor } from '../pages/filters.ts';

/** The place of a table's page in the query, such as `before=1234`; undefined where it is none. */
export function cursorOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? '';
  return isCursor(text) ? Number(text) : undefined;
}

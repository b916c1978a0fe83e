import type { Handle } from './requests.ts';
import { problemView } from './problem.ts';
import type { View } from './visit.ts';

/** Which texts of a filter can be read, by its name. An empty text is not a filter. */
export type Filters = Readonly<Record<string, (text: string) => boolean>>;

/** The place of a table's page, such as `before=1234`. */
export const isCursor = (text: string): boolean => /^[1-9]\d{0,14}$/.test(text);

/** A page for filters that cannot be read; undefined if all can. A filter left out would show everything. */
export function unreadableView(values: URLSearchParams, filters: Filters): View | undefined {
  for (const [name, isReadable] of Object.entries(filters)) {
    const given = values.getAll(name).filter((text) => text !== '');
    if (given.length <= 1 && given.every(isReadable)) continue;
    const text = `"${name}" cannot be read: ${given.map((one) => `"${one.slice(0, 100)}"`).join(' and ')}. Nothing was changed.`;
    return problemView(400, text);
  }
  return undefined;
}

/** Shows a page only if its filters can be read. */
export function readable<V extends { readonly query: URLSearchParams }>(
  filters: Filters,
  handle: Handle<V>,
): Handle<V> {
  return (visit) => unreadableView(visit.query, filters) ?? handle(visit);
}

/** The place of a table's page in the query, such as `before=1234`; undefined where it is none. */
export function cursorOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? '';
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

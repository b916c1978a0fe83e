import { daysOf, usageQuery } from '../../../chat/http/schemas/usage.ts';
import { pathWith } from '../own-path.ts';

export const measures = { cost: 'Cost', requests: 'Requests', tokens: 'Tokens' } as const;
export type Measure = keyof typeof measures;

/** What the page of usage shows. */
export interface Shown {
  readonly from: string;
  readonly to: string;
  readonly model: string | undefined;
  readonly keyId: number | undefined;
  /** Undefined: the range that suits the account. */
  readonly measure: Measure | undefined;
}

const filters = usageQuery.pick({ from: true, to: true, model: true, key_id: true });

/** Reads the page's query by the rules of the API; undefined if the API would refuse it. */
export function readShown(query: URLSearchParams, nowMs: number): Shown | undefined {
  const names = Object.keys(filters.shape);
  // a form sends its empty fields as well
  const given = [...query].filter(([name, value]) => names.includes(name) && value !== '');
  const { data } = filters.safeParse(Object.fromEntries(given));
  const days = data && daysOf(data, nowMs);
  if (!days) return undefined;
  return { ...days, model: data.model, keyId: data.key_id, measure: measureOf(query.get('show')) };
}

function measureOf(text: string | null): Measure | undefined {
  return (Object.keys(measures) as Measure[]).find((name) => name === text);
}

/** The page with something else to show. */
export function pathTo(shown: Shown, change: Partial<Shown>): string {
  const { from, to, model, keyId, measure } = { ...shown, ...change };
  return pathWith('/usage', { from, to, model, key_id: keyId?.toString(), show: measure });
}

/** The single requests of these sums. */
export function requestsPathFor({ from, to, model, keyId }: Shown): string {
  return pathWith('/usage/requests', { from, to, model, key_id: keyId?.toString() });
}

/** The same days and filters as a file, by day, model and key. */
export function csvPath({ from, to, model, keyId }: Shown): string {
  return pathWith('/v1/usage.csv', { from, to, model, key_id: keyId?.toString() });
}

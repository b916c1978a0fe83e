import { type CounterName, counterNames } from './descriptor.ts';
import { type LedgerEvent, typesListing } from './event.ts';

export type Counters = Record<CounterName, number>;

const typesOf = counterNames.map((name) => [name, typesListing('counters', name)] as const);

/** The public counters from the number of events of each type. */
export function countersFrom(countOf: ReadonlyMap<string, number>): Counters {
  const entries = typesOf.map(([name, types]) => [
    name,
    types.reduce((sum, type) => sum + (countOf.get(type) ?? 0), 0),
  ]);
  return Object.fromEntries(entries) as Counters;
}

/**
 * What an event adds to the numbers of events by type: itself, and the refusals or quotes that it sums. A quote that was
 * summarised and then paid was counted by its sum.
 */
export function* countsOf(event: LedgerEvent): Generator<readonly [type: string, count: number]> {
  if (event.type === 'quote_issued' && event.data.summarised) return;
  yield [event.type, 1];
  if (event.type === 'refusals_counted') yield* Object.entries(event.data.counts);
  if (event.type === 'quotes_issued')
    yield ['quote_issued', event.data.quotes.reduce((sum, { count }) => sum + count, 0)];
}

/** The numbers of events by type. */
export function countByType(events: Iterable<LedgerEvent>): Map<string, number> {
  const countOf = new Map<string, number>();
  for (const event of events)
    for (const [type, count] of countsOf(event)) countOf.set(type, (countOf.get(type) ?? 0) + count);
  return countOf;
}

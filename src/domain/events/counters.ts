import { type CounterName, counterNames } from './descriptor.ts';
import { typesListing } from './event.ts';

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

import { rateOn } from '../../../audit/rules/bookkeeping/worth.ts';
import { taxOf } from '../../../audit/rules/bookkeeping/tax.ts';
import type { Books, BooksPart } from './books.ts';

/**
 * The same books, which note what their export leaves empty: rates of the value's currency, countries of customers, rates of tax. Read
 * `missing` once the export is written: sentences without their full stop.
 */
export function notingMissing(books: Books): { readonly books: Books; missing(): string[] } {
  const commodities = new Map<string, string>();
  const taxes = new Set<string>();
  const note = (part: BooksPart): void => {
    if (part.kind !== 'entry') return;
    const { valuation, tax } = books;
    for (const move of part.entry.moves) {
      const { name } = move.commodity;
      const day = part.entry.recordedAt.slice(0, 10);
      if (valuation && rateOn(move.commodity, day, valuation) === undefined) commodities.set(name, day);
      const found = tax && taxOf(part.entry, move, tax);
      if (found?.kind === 'no_country')
        taxes.add(`customer ${found.customer} has no country: its tax is left empty`);
      if (found?.kind === 'no_rate')
        taxes.add(`no rate of tax of ${found.of} in ${found.country}: it is left empty`);
    }
  };
  return {
    books: {
      ...books,
      async *parts() {
        for await (const part of books.parts()) {
          note(part);
          yield part;
        }
      },
    },
    missing: () => [
      ...[...commodities].map(
        ([name, day]) =>
          `no rate of ${name} in ${books.valuation?.currency} on ${day} or before: the value is left empty`,
      ),
      ...taxes,
    ],
  };
}

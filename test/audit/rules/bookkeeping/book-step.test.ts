import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Entry } from '../../../../src/base/values/entry.ts';
import { accounts } from '../../../../src/audit/rules/bookkeeping/account.ts';
import { bookedTypes, bookStep } from '../../../../src/audit/rules/bookkeeping/book-step.ts';
import { noBooks } from '../../../../src/audit/rules/bookkeeping/books-state.ts';
import type { RecordedEvent } from '../../../../src/ledger/rules/event.ts';
import { propertyRuns } from '../../../support/property-runs.ts';
import { anyBooks } from './any-books.ts';
import { entriesOf, recorded } from './support.ts';

const booked: ReadonlySet<string> = new Set(bookedTypes);

/** The entries of a ledger in steps of so many events; a step knows the streams and conversions of its events and nothing else. */
function inSteps(events: readonly RecordedEvent[], size: number): { entries: Entry[]; unbooked: number[] } {
  const [entries, unbooked]: [Entry[], number[]] = [[], []];
  const state = noBooks();
  let currency: string | undefined;
  for (let after = 0; after < events.length; after += size) {
    const all = events.slice(after, after + size);
    const found = all.filter(({ type }) => booked.has(type));
    const named = found.flatMap(({ data }) => ('quote_digest' in data ? [data.quote_digest as string] : []));
    const streams = new Set([...found.map(({ stream }) => stream), ...named]);
    const next = all.filter(
      ({ type, stream }) => booked.has(type) || (type === 'quote_issued' && streams.has(stream)),
    );
    const converted = new Set(
      entries.flatMap(({ seq, stream, quoteDigest }) =>
        quoteDigest !== stream && streams.has(quoteDigest ?? '') ? (seq ?? []) : [],
      ),
    );
    const past = events
      .slice(0, after)
      .filter(
        ({ seq, stream }) => (streams.has(stream) && !stream.startsWith('account:')) || converted.has(seq),
      );
    const step = bookStep(state, currency, { past, used: usedBy(entries), next });
    currency = step.currency;
    entries.push(...step.entries);
    unbooked.push(...step.unbooked);
  }
  return { entries, unbooked };
}

const debits = (entry: Entry, account: string): bigint =>
  entry.moves.reduce((sum, { debit, atoms }) => sum + (debit === account ? atoms : 0n), 0n);

function usedBy(entries: readonly Entry[]) {
  return new Map(
    entries.map((entry) => [
      entry.seq ?? 0,
      { granted: debits(entry, accounts.grantedCredit), bought: debits(entry, accounts.boughtCredit) },
    ]),
  );
}

test('the entries of a ledger are the same in steps of any length and as a whole', () => {
  fc.assert(
    fc.property(anyBooks, fc.integer({ min: 1, max: 30 }), (stream, size) => {
      const events = recorded(stream);
      const { entries, unbooked } = inSteps(events, size);
      expect(unbooked).toEqual([]);
      expect(entries.map(withoutNames)).toEqual(entriesOf(events).map(withoutNames));
    }),
    propertyRuns(40),
  );
});

/** Without the currency and the names of accounts, which steps learn later than a bookkeeper who has read the whole ledger. */
function withoutNames({ moves, ...entry }: Entry) {
  return {
    ...entry,
    accountName: undefined,
    moves: moves.map(({ commodity, ...move }) => ({
      ...move,
      commodity: commodity.network === undefined ? 'credit' : commodity,
    })),
  };
}

test('an event that contradicts those before it has no entry, and the events after it have theirs', () => {
  const [quote, ...paid] = recorded(fc.sample(anyBooks, { seed: 1, numRuns: 1 })[0]!);
  const events = [quote!, ...paid];
  const lost = events.find(({ type }) => type === 'quote_issued')!;
  const left = events.filter(({ seq }) => seq !== lost.seq);
  const { entries, unbooked } = inSteps(left, 7);
  const ofLost = (stream: string | undefined): boolean => stream === lost.stream;
  expect(unbooked.length).toBeGreaterThan(0);
  expect(unbooked.map((seq) => events[seq - 1]!.stream).every(ofLost)).toBe(true);
  const others = events.filter(({ stream }) => !ofLost(stream));
  const seqs = new Set(entriesOf(others).map(({ seq }) => seq));
  expect(new Set(entries.map(({ seq }) => seq))).toEqual(seqs);
});

import type { AgedItem } from './aging.ts';
import { Bookkeeper } from './bookkeeper.ts';
import { BooksError } from './books-error.ts';
import type { BooksState } from './books-state.ts';
import { currencyIn } from './commodity.ts';
import type { Entry } from '../../../base/values/entry.ts';
import type { CreditParts } from '../../../accounts/rules/credit/credit-parts.ts';
import {
  eventDescriptors,
  eventTypes,
  type EventType,
  hasAspect,
  type RecordedEvent,
} from '../../../ledger/rules/event.ts';

/** The next events of a ledger, and the earlier ones that their entries depend on. */
export interface BookStep {
  /** Earlier events of the quotes, transfers and completions that change, with the conversions of those quotes. In any order. */
  readonly past: readonly RecordedEvent[];
  /** The parts of credit that events moved, by `seq`: of captures whose cost is corrected, and of next events that have postings. */
  readonly used: ReadonlyMap<number, CreditParts>;
  /** Of {@link bookedTypes}, with no gap, and the quotes of those. In any order. */
  readonly next: readonly RecordedEvent[];
}

export interface BookedStep {
  readonly entries: readonly Entry[];
  readonly settlements: readonly SettlementChange[];
  /** The `seq` of the events that contradict those before them, and have no entry. */
  readonly unbooked: readonly number[];
  /** Of credit; undefined while no event has said it. */
  readonly currency: string | undefined;
}

/** A payment whose settlement became unknown, or known, by an event. */
export interface SettlementChange {
  readonly seq: number;
  /** As it was open before. */
  readonly before: AgedItem | undefined;
  /** As it is open since. */
  readonly after: AgedItem | undefined;
}

/** Whether a bookkeeper reads an event. */
export function isOfBooks(event: Pick<RecordedEvent, 'type'>): boolean {
  return hasAspect(event, 'bookkeeping') || event.type === 'operator_models_loaded';
}

/** The types of events that change the books. A quote does once it is paid: it is found in its stream then. */
export const bookedTypes: readonly EventType[] = eventTypes.filter(
  (type) => isOfBooks({ type }) && type !== 'quote_issued',
);

/** Those of them that no other read model reads. */
export const typesOfBooksAlone: readonly EventType[] = bookedTypes.filter(
  (type) => eventDescriptors[type].readModels === 'none',
);

/** Keeps the books of a part of a ledger: the entries are those of a bookkeeper who has kept all of it. Changes the state. */
export function bookStep(
  state: BooksState,
  knownCurrency: string | undefined,
  { past, used, next }: BookStep,
): BookedStep {
  const events = inOrder(next);
  const currency = knownCurrency ?? events.map(currencyIn).find((one) => one !== undefined);
  // a step is short, so nothing in it needs to be forgotten
  const bookkeeper = new Bookkeeper(() => true, currency, state);
  for (const event of inOrder(past)) unlessContradicted(() => bookkeeper.recall(event, used.get(event.seq)));
  const entries: Entry[] = [];
  const settlements: SettlementChange[] = [];
  const unbooked: number[] = [];
  for (const event of events) {
    const before = bookkeeper.openSettlement(event.stream);
    const isBooked = unlessContradicted(() => {
      const entry = bookkeeper.post(event, used.get(event.seq));
      if (entry) entries.push(entry);
    });
    const after = bookkeeper.openSettlement(event.stream);
    if ((before === undefined) !== (after === undefined)) settlements.push({ seq: event.seq, before, after });
    if (!isBooked) unbooked.push(event.seq);
  }
  return { entries, settlements, unbooked, currency };
}

function inOrder(events: readonly RecordedEvent[]): RecordedEvent[] {
  return events.toSorted((a, b) => a.seq - b.seq);
}

/** False: the event contradicts those before it, and has changed nothing. */
function unlessContradicted(post: () => void): boolean {
  try {
    post();
    return true;
  } catch (error) {
    if (!(error instanceof BooksError)) throw error;
    return false;
  }
}

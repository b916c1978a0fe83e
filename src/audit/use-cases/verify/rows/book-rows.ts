import { isTriggeredStream } from '../../../../base/values/triggers/trigger.ts';
import { type RecordedEvent, typesListing } from '../../../../ledger/rules/event.ts';
import { itemKey } from '../../../rules/bookkeeping/aging.ts';
import {
  type ItemVersion,
  itemVersions,
  touchedItems,
} from '../../../rules/bookkeeping/open-item-versions.ts';
import {
  type BookedStep,
  bookStep,
  bookedTypes,
  typesOfBooksAlone,
} from '../../../rules/bookkeeping/book-step.ts';
import { noBooks } from '../../../rules/bookkeeping/books-state.ts';
import {
  findWrongBalances,
  findWrongBookState,
  findWrongPostings,
} from '../../../../ledger/store/book-rows.ts';
import {
  readLeavesOf,
  readStreamsOf,
  type RowSnapshot,
  type WrongRow,
} from '../../../../ledger/store/stored-rows.ts';
import { findWrongItems, type NamedItem } from '../../../../ledger/store/open-items.ts';
import {
  commodityKeys,
  completeStep,
  creditKey,
  dependsOnStream,
  postingsOf,
  stateRows,
} from '../../projections/book-model.ts';
import { namedItem } from '../../projections/open-item-model.ts';

/** The types whose events are read one by one, as the projector reads them, and those that are read with their streams. */
const singleTypes = [...typesListing('readModels', 'credit'), ...typesOfBooksAlone];
const streamTypes = bookedTypes.filter((type) => !singleTypes.includes(type));

/** How to read the ledger without the events that cannot be read. */
interface Readers {
  readonly decode: (leaf: string) => RecordedEvent[];
  readonly readStreams: (streams: readonly string[]) => Promise<readonly (readonly RecordedEvent[])[]>;
}

/**
 * Compares the postings with the books that are kept of the events, part by part from the first one on. A part depends on the stored
 * postings of earlier parts alone, which were compared.
 */
export class BookComparison {
  readonly #snapshot: RowSnapshot;
  readonly #readers: Readers;
  readonly #state = noBooks();
  #currency: string | undefined;
  #compared = 0;
  /** How the items that are open, or were used up, are at present. */
  readonly #items = new Map<string, ItemVersion>();

  constructor(snapshot: RowSnapshot, readers: Readers) {
    this.#snapshot = snapshot;
    this.#readers = readers;
  }

  /**
   * Compares the postings of the next part of the ledger, up to the cursor of the read models.
   * @param begun whole streams that were read for this part already
   */
  async compare(end: number, begun: readonly (readonly RecordedEvent[])[]): Promise<WrongRow[]> {
    const { client, generation, seq, hasPostings } = this.#snapshot;
    const [after, last] = [this.#compared, Math.min(end, seq)];
    this.#compared = last;
    if (!hasPostings || last <= after) return [];
    const leaves = await readLeavesOf(this.#snapshot, singleTypes, after, last);
    const found = leaves.flatMap(this.#readers.decode);
    const touched = new Set([
      ...(await readStreamsOf(this.#snapshot, streamTypes, after, last)).filter(
        (stream) => !isTriggeredStream(stream),
      ),
      ...found.filter(dependsOnStream).map(({ stream }) => stream),
    ]);
    const known = begun.filter(([first]) => touched.delete(first?.stream ?? ''));
    const whole = [...known, ...(await this.#readers.readStreams([...touched]))];
    const streams = whole.map((events) => events.filter((event) => event.seq <= last));
    const isRead = new Set(whole.map(([first]) => first?.stream));
    const events = found.filter((event) => !dependsOnStream(event) || isRead.has(event.stream));
    const step = await completeStep(client, { generation, after, last, events, streams });
    const booked = bookStep(this.#state, this.#currency, step);
    this.#currency = booked.currency;
    const closed = this.#namedItems(this.#keepItems(booked));
    return [
      ...(await findWrongPostings(this.#snapshot, after, last, postingsOf(booked.entries, this.#state))),
      ...(await findWrongItems(this.#snapshot, { afterSeq: after, lastSeq: last }, closed)),
    ];
  }

  /** Follows the items through a part of the ledger; returns the versions that ended in it. */
  #keepItems(booked: BookedStep): ItemVersion[] {
    const known = touchedItems(booked).flatMap((of) => this.#items.get(itemKey(of)) ?? []);
    const { ended, added } = itemVersions(known, booked);
    for (const { known: version } of ended) this.#items.delete(itemKey(version.item.of));
    for (const version of added)
      if (version.closed === undefined) this.#items.set(itemKey(version.item.of), version);
    return [
      ...ended.map(({ known: version, closed }) => ({ ...version, closed })),
      ...added.filter(({ closed }) => closed !== undefined),
    ];
  }

  #namedItems(versions: readonly ItemVersion[]): NamedItem[] {
    const keys = commodityKeys(this.#state);
    return versions.map((version) => namedItem(version, keys.get(version.item.of.commodity) ?? creditKey));
  }

  /** Postings before the first event and after the cursor, the balances, and what the next step begins with. */
  async finish(): Promise<WrongRow[]> {
    const snapshot = this.#snapshot;
    const { seq, hasPostings } = snapshot;
    if (!hasPostings) return [];
    const wrong = [
      ...(await findWrongPostings(snapshot, Number.MIN_SAFE_INTEGER, 0, [])),
      ...(await findWrongPostings(snapshot, seq, Number.MAX_SAFE_INTEGER, [])),
    ];
    const { commodities, payees, credit } = stateRows(this.#state, this.#currency);
    // a generation without events has written nothing
    const known = seq === 0 ? [] : commodities;
    wrong.push(...(await findWrongBookState(snapshot, 'book_commodity', known)));
    wrong.push(...(await findWrongBookState(snapshot, 'book_payee', payees)));
    wrong.push(...(await findWrongBookState(snapshot, 'book_credit', credit)));
    const present = this.#namedItems([...this.#items.values()]);
    wrong.push(...(await findWrongItems(snapshot, { exceptUpTo: seq }, present)));
    // sums of postings that are wrong themselves say nothing more
    return wrong.length > 0 ? wrong : findWrongBalances(snapshot);
  }
}

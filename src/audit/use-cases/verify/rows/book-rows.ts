import { isTriggeredStream } from '../../../../base/values/triggers/trigger.ts';
import { type RecordedEvent, typesListing } from '../../../../ledger/rules/event.ts';
import { bookStep, bookedTypes, typesOfBooksAlone } from '../../../rules/bookkeeping/book-step.ts';
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
import { completeStep, dependsOnStream, postingsOf, stateRows } from '../../projections/book-model.ts';

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
    const { entries, currency } = bookStep(this.#state, this.#currency, step);
    this.#currency = currency;
    return findWrongPostings(this.#snapshot, after, last, postingsOf(entries, this.#state));
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
    // sums of postings that are wrong themselves say nothing more
    return wrong.length > 0 ? wrong : findWrongBalances(snapshot);
  }
}

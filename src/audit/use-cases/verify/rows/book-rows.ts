import type { RecordedEvent } from '../../../../ledger/rules/event.ts';
import { bookStep, bookedTypes } from '../../../../finance/rules/bookkeeping/book-step.ts';
import { noBooks } from '../../../../finance/rules/bookkeeping/books-state.ts';
import {
  findWrongBalances,
  findWrongBookState,
  findWrongPostings,
} from '../../../../ledger/store/book-rows.ts';
import { readLeavesOf, type RowSnapshot, type WrongRow } from '../../../../ledger/store/stored-rows.ts';
import { completeStep, dependsOnStream, postingsOf, stateRows } from '../../projections/book-model.ts';

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

  /** Compares the postings of the next part of the ledger, up to the cursor of the read models. */
  async compare(end: number): Promise<WrongRow[]> {
    const { client, generation, seq, hasPostings } = this.#snapshot;
    const [after, last] = [this.#compared, Math.min(end, seq)];
    this.#compared = last;
    if (!hasPostings || last <= after) return [];
    const leaves = await readLeavesOf(this.#snapshot, bookedTypes, after, last);
    const found = leaves.flatMap(this.#readers.decode);
    const whole = await this.#readers.readStreams([
      ...new Set(found.filter(dependsOnStream).map(({ stream }) => stream)),
    ]);
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

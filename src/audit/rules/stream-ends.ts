import { HashedNumbers } from '../../base/values/hashed-numbers.ts';

/** The last event of each stream of a ledger that was read once, so that a second reading can forget a stream after it. */
export class StreamEnds {
  readonly #ends = new HashedNumbers();

  /** Takes the next leaf, which is of this stream. */
  take(stream: string, leaf: Buffer, seq: number): void {
    this.#ends.set(stream, seq);
    if (!leaf.includes('"quote_digest"')) return;
    const named = quoteNamedIn(leaf);
    if (named !== undefined) this.#ends.set(named, seq);
  }

  /** Whether no later event is of the stream or names it. */
  isLast(stream: string, seq: number): boolean {
    return this.#ends.get(stream) <= seq;
  }
}

/** Undefined also if the bytes are not an event: their next reader reports that. */
function quoteNamedIn(leaf: Buffer): string | undefined {
  try {
    return namedQuote((JSON.parse(leaf.toString('utf8')) as { data: object }).data);
  } catch {
    return undefined;
  }
}

/** The quote that an event names in its data. */
export function namedQuote(data: object): string | undefined {
  return 'quote_digest' in data && typeof data.quote_digest === 'string' ? data.quote_digest : undefined;
}

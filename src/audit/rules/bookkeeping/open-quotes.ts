import { type BookedPayment, isClosed } from './payment.ts';

/** A quote with the payment that was started for it. */
export interface BookedQuote {
  readonly serviceId: number;
  readonly jobIndex: number;
  /** Which service issued it; undefined for a 402 answer. */
  readonly source: string | undefined;
  /** The hour since 1970 in which it expires. */
  readonly endsHour: number;
  payment: BookedPayment | undefined;
}

const hourMs = 3_600_000;
/** A payment that was in time may be recorded shortly after its quote has expired. */
const slackHours = 2;

/**
 * The quotes that may still change: payable ones, those with a payment that is settling, unconfirmed, undelivered or due for
 * refund, and those of `isReopened`. All others are forgotten, so memory does not grow with the ledger.
 */
export class OpenQuotes {
  readonly #quotes = new Map<string, BookedQuote>();
  /** Digests by the hour in which their quotes expire. */
  readonly #expiring = new Map<number, string[]>();
  readonly #isReopened: (digest: string) => boolean;
  #hour = 0;

  constructor(isReopened: (digest: string) => boolean) {
    this.#isReopened = isReopened;
  }

  /** The number of quotes in memory. */
  get size(): number {
    return this.#quotes.size;
  }

  issue(
    digest: string,
    { serviceId, jobIndex, source }: Pick<BookedQuote, 'serviceId' | 'jobIndex' | 'source'>,
    expiresAtSecs: number,
  ): void {
    const endsHour = Math.max(Math.floor((expiresAtSecs * 1_000) / hourMs), this.#hour);
    this.#quotes.set(digest, { serviceId, jobIndex, source, endsHour, payment: undefined });
    const others = this.#expiring.get(endsHour);
    if (others) others.push(digest);
    else this.#expiring.set(endsHour, [digest]);
  }

  /** All of them, by their digests. */
  list(): Iterable<readonly [digest: string, BookedQuote]> {
    return this.#quotes;
  }

  find(digest: string): BookedQuote | undefined {
    return this.#quotes.get(digest);
  }

  /** Forgets a quote that cannot change any more. */
  settle(digest: string): void {
    const quote = this.#quotes.get(digest);
    if (quote && ((quote.payment && isClosed(quote.payment)) || this.#hasEnded(quote.endsHour)))
      this.#forget(digest, quote);
  }

  /** Forgets quotes that have expired unpaid. */
  tick(nowMs: number): void {
    const hour = Math.floor(nowMs / hourMs);
    if (hour <= this.#hour) return;
    this.#hour = hour;
    for (const [endsHour, digests] of this.#expiring) {
      if (!this.#hasEnded(endsHour)) continue;
      this.#expiring.delete(endsHour);
      for (const digest of digests) {
        const quote = this.#quotes.get(digest);
        if (quote) this.#forget(digest, quote);
      }
    }
  }

  #hasEnded(endsHour: number): boolean {
    return endsHour + slackHours <= this.#hour;
  }

  #forget(digest: string, { payment }: BookedQuote): void {
    const isOver = !payment || isClosed(payment) || payment.status === 'settlement_failed';
    if (isOver && !this.#isReopened(digest)) this.#quotes.delete(digest);
  }
}

import { type BookedPayment, isClosed } from './payment.ts';

/** A quote with the payments that were started for it. */
export interface BookedQuote {
  readonly serviceId: number;
  readonly jobIndex: number;
  /** The hour since 1970 in which it runs out. */
  readonly endsHour: number;
  payments: readonly BookedPayment[];
}

const hourMs = 3_600_000;
/** A payment that was in time can be recorded a little after its quote has run out. */
const slackHours = 2;

/**
 * The quotes that something is still to come of: those that can be paid, those with a payment that is under way, unconfirmed,
 * undelivered or due, and those that `isReopened` says come back. All others are forgotten, so memory does not grow with
 * the ledger.
 */
export class OpenQuotes {
  readonly #quotes = new Map<string, BookedQuote>();
  /** Digests by the hour in which their quotes run out. */
  readonly #expiring = new Map<number, string[]>();
  readonly #isReopened: (digest: string) => boolean;
  #hour = 0;

  constructor(isReopened: (digest: string) => boolean) {
    this.#isReopened = isReopened;
  }

  /** How many are remembered. */
  get size(): number {
    return this.#quotes.size;
  }

  issue(digest: string, serviceId: number, jobIndex: number, expiresAtSecs: number): void {
    const endsHour = Math.max(Math.floor((expiresAtSecs * 1_000) / hourMs), this.#hour);
    this.#quotes.set(digest, { serviceId, jobIndex, endsHour, payments: [] });
    const others = this.#expiring.get(endsHour);
    if (others) others.push(digest);
    else this.#expiring.set(endsHour, [digest]);
  }

  find(digest: string): BookedQuote | undefined {
    return this.#quotes.get(digest);
  }

  /** Forgets a quote that nothing is still to come of. */
  settle(digest: string): void {
    const quote = this.#quotes.get(digest);
    if (quote && (quote.payments.some(isClosed) || this.#hasEnded(quote.endsHour)))
      this.#forget(digest, quote);
  }

  /** Forgets what has run out unpaid by now. */
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

  #forget(digest: string, { payments }: BookedQuote): void {
    const isOver = payments.every((payment) => isClosed(payment) || payment.status === 'settlement_failed');
    if (isOver && !this.#isReopened(digest)) this.#quotes.delete(digest);
  }
}

import type { RecordedEvent } from './event.ts';

/** Credit of a top-up whose payment did not last: what was still there, and what is missing. */
interface CreditTakenBack extends Pick<RecordedEvent, 'seq' | 'stream' | 'version' | 'at'> {
  readonly type: 'credit_taken_back';
  readonly data: {
    readonly account_id: number;
    readonly amount_micros: string;
    readonly missing_micros: string;
    readonly call_id: number;
    readonly quote_digest: string;
  };
}

/** Events that the books know. */
export type BooksEvent = RecordedEvent | CreditTakenBack;

export type BooksEventOf<T extends BooksEvent['type']> = Extract<BooksEvent, { type: T }>;

/** The ledger says something that cannot be posted: it was cut, or changed. */
export class BooksFault extends Error {
  constructor(seq: number, words: string) {
    super(`event ${seq}: ${words}; tollbook verify says what is wrong with this ledger`);
  }
}

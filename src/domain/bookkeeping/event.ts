import type { RecordedEvent } from '../events/event.ts';

export type BooksEventOf<T extends RecordedEvent['type']> = Extract<RecordedEvent, { type: T }>;

/** The ledger says something that cannot be posted: it was cut, or changed. */
export class BooksError extends Error {
  constructor(seq: number, words: string) {
    super(`event ${seq}: ${words}; tollbook verify says what is wrong with this ledger`);
  }
}

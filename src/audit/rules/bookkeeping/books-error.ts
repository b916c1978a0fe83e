/** An event contradicts the events before it, so it cannot be posted: the ledger is incomplete or was changed. */
export class BooksError extends Error {
  override readonly name = 'BooksError';

  constructor(seq: number, message: string) {
    super(`event ${seq}: ${message}; run tollbook verify to find what is wrong with this ledger`);
  }
}

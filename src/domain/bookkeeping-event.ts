import type { RecordedEvent } from './event.ts';

interface Transfer {
  readonly network: string;
  readonly asset: string;
  readonly amount: string;
  readonly transaction: string;
  readonly block_number: string;
  readonly log_index: number;
}

interface LaterData {
  refunded: Transfer & {
    readonly payer: string;
    readonly payment_nonce: string;
    readonly refunded_to: string;
    readonly refunded_from?: string;
  };
  operator_sweep_recorded: Transfer & {
    readonly symbol: string;
    readonly decimals: number;
    readonly pay_to: string;
    readonly swept_to: string;
  };
  credit_taken_back: {
    readonly account_id: number;
    readonly amount_micros: string;
    readonly missing_micros: string;
    readonly call_id: number;
    readonly quote_digest: string;
  };
}

type Place = Pick<RecordedEvent, 'seq' | 'stream' | 'version' | 'at'>;

/** Events that the books know. */
export type BooksEvent =
  | RecordedEvent
  | { [T in keyof LaterData]: Place & { readonly type: T; readonly data: LaterData[T] } }[keyof LaterData];

export type BooksEventOf<T extends BooksEvent['type']> = Extract<BooksEvent, { type: T }>;

/** The ledger says something that cannot be posted: it was cut, or changed. */
export class BooksFault extends Error {
  readonly seq: number;

  constructor(seq: number, words: string) {
    super(`event ${seq}: ${words}; tollbook verify says what is wrong with this ledger`);
    this.seq = seq;
  }
}

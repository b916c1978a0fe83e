import type pg from 'pg';
import { decodeLeaf, type RecordedEvent } from '../../../ledger/rules/event.ts';
import { foldQuote, isPaid, type ReceiptState, receiptState } from '../../../payments/rules/quote-state.ts';
import type { StoredHead } from '../../store/log.ts';
import { readStreamLeaves } from '../../../ledger/store/streams.ts';
import type { LogReader } from '../log/log-reader.ts';
import type { InclusionProof } from '../log/prove.ts';

/** All events of a quote, with inclusion proofs of those that are sealed. */
export interface PaymentHistory {
  readonly state: ReceiptState;
  readonly paid: boolean | null;
  /** Which service issued the quote; undefined for a 402 answer, and if the quote is lost. */
  readonly quoteSource: 'pricing' | undefined;
  readonly head: StoredHead | undefined;
  readonly events: readonly {
    readonly event: RecordedEvent;
    readonly leaf: Buffer;
    readonly proof: InclusionProof | undefined;
  }[];
}

/** Undefined if the ledger has no such quote. */
export async function readPaymentHistory(
  pool: pg.Pool,
  reader: LogReader | undefined,
  digest: string,
): Promise<PaymentHistory | undefined> {
  const [head, rows] = await Promise.all([reader?.newest(), readStreamLeaves(pool, digest)]);
  if (rows.length === 0) return undefined;
  const events = rows.map(({ leaf }) => decodeLeaf(leaf));
  const quote = foldQuote(events);
  const seqs = rows.map(({ seq }) => seq);
  const proven = head && (await reader?.proveSealed(head, seqs));
  const proofOf = new Map(proven?.proofs.map((proof) => [proof.seq, proof]));
  return {
    state: receiptState(quote, Math.floor(rows[0]?.now ?? 0)),
    paid: isPaid(quote),
    quoteSource: quote.quote?.source,
    head,
    events: events.map((event, index) => ({
      event,
      leaf: rows[index]?.leaf ?? Buffer.alloc(0),
      proof: proofOf.get(event.seq),
    })),
  };
}

import type pg from 'pg';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { foldQuote, type PaymentState, type QuoteState } from '../rules/quote-state.ts';
import { listUnresolved } from '../store/follow-ups.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { listUnsettled } from '../store/unsettled.ts';
import { findByKey, findTakenBack } from './resolve-settlement.ts';

/** A settlement without an outcome, for the operator. */
export interface OpenSettlementRow {
  readonly digest: string;
  /** Which service issued its quote; undefined for a 402 answer. */
  readonly quoteSource: 'pricing' | undefined;
  readonly since: Date;
  /** A runner has its call: only the money is open. */
  readonly isWithRunner: boolean;
  /** A machine-readable code: why the outcome is unknown, or `settling` before there is an answer. */
  readonly reason: string;
  readonly payment: PaymentState['payment'] | undefined;
  /** Transactions that a facilitator named for it. */
  readonly hints: readonly string[];
}

/** Open settlements, oldest first. */
export async function listOpenSettlements(
  ledger: { readonly pool: pg.Pool; readonly db: LedgerDatabase },
  limit: number,
): Promise<OpenSettlementRow[]> {
  const [calls, kept] = await Promise.all([
    listUnsettled(ledger.db, limit),
    listUnresolved(ledger.db, limit),
  ]);
  const waiting = calls.map(async ({ stream, payment, created_at }) => {
    const quote = foldQuote((await readStream(ledger.pool, stream)).events);
    const known = findByKey(quote, payment);
    // a call that a runner had is listed below
    return known?.call ? [] : rowOf(stream, created_at, { quote, known });
  });
  const withRunners = kept.map(async ({ stream, seq, created_at }) =>
    rowOf(stream, created_at, await findTakenBack(ledger, stream, seq)),
  );
  const rows = await Promise.all([...waiting, ...withRunners]);
  return rows.flat().toSorted((a, b) => a.since.getTime() - b.since.getTime());
}

function rowOf(
  digest: string,
  since: Date,
  { quote, known }: { readonly quote: QuoteState; readonly known: PaymentState | undefined },
): OpenSettlementRow {
  return {
    digest,
    quoteSource: quote.quote?.source,
    since,
    reason: known?.reason ?? known?.status ?? 'not_in_the_ledger',
    isWithRunner: known?.call !== undefined,
    payment: known?.payment,
    hints: known?.hints ?? [],
  };
}

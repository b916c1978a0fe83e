import type pg from 'pg';
import { paymentRowsOf } from '../../../audit/use-cases/projections/read-model.ts';
import { chunksOf } from '../../../base/values/chunks.ts';
import type { Refunding } from '../../../payments/rules/payment-progress.ts';
import { queriesOn } from '../../../ledger/store/database.ts';
import { readAsked } from './list-requests.ts';
import { foldQuote } from '../../../payments/rules/quote-state.ts';
import { readStreamsUpTo } from '../../../ledger/store/projection.ts';
import {
  findStreamsThatMayOwe,
  listRefundsDue as listInReadModel,
  readStoredDues,
  type RefundDueRow,
} from '../../../payments/store/refunds.ts';
import { type Attested, readCompared, streamsAtOnce } from '../attestations/attested.ts';
import { withStoredRows } from '../../../ledger/store/stored-rows.ts';

/** A refund that is due, and the one of its payment that is started. */
export interface ListedRefund extends RefundDueRow {
  readonly under_way: StartedRefundRow | null;
  /** What its payer asks for, if it does: its words may be anything, and null once they are deleted. */
  readonly requested: { readonly at: string; readonly reason: string | null } | null;
}

/** Times are RFC 3339. */
export interface StartedRefundRow {
  readonly since: string;
  readonly age_secs: number;
  readonly operator: string;
  readonly sender: string | null;
  readonly sender_nonce: number | null;
  readonly transaction: string | null;
}

export interface RefundsDue {
  /** The last event that the list includes. */
  readonly asOfSeq: number;
  /** What is owed, and to whom, by the events of each payment. */
  readonly rows: readonly ListedRefund[];
  /** Payments whose row in the read model says something else than their events, which decide. */
  readonly contradicted: readonly number[];
  /** Events of listed payments that are not those that the log has sealed. Their payments are left out of `rows`. */
  readonly changed: readonly number[];
  /** The places of all rows of this page in the read model: if it is full, the next page begins after the last one. */
  readonly listed: readonly number[];
}

/**
 * Payments for which a refund is due, after a place in the ledger. The read model says where to look; payee, amount and reason are those
 * of the payment's own events, so that an edited row changes no payee; and the events are compared with the log where there is one, so that an
 * edited event changes none either. What was removed, a row or an event, is not missed here: `findUnlistedRefunds` and `isAsSealed` find it.
 */
export async function listRefundsDue(pool: pg.Pool, afterSeq: number, limit: number): Promise<RefundsDue> {
  const { asOfSeq, rows: listed } = await listInReadModel(pool, afterSeq, limit);
  const quotes = [...new Set(listed.map((row) => row.quote_digest))];
  const { streams, broken: changed } = await readCompared(pool, quotes, asOfSeq);
  const changedQuotes = new Set(
    streams.flatMap((events) => events.flatMap(({ seq, stream }) => (changed.includes(seq) ? [stream] : []))),
  );
  const bySeq = new Map(
    streams.flatMap((events) => paymentRowsOf(events).payments.map((payment) => [payment.seq, payment])),
  );
  const quoteStates = new Map(streams.map((events) => [events[0]?.stream, foldQuote(events)]));
  const rows: ListedRefund[] = [];
  const contradicted: number[] = [];
  for (const row of listed) {
    const payment = bySeq.get(row.seq);
    if (payment?.refund_due == null || payment.transaction === null || payment.refund_due_since === null) {
      contradicted.push(row.seq);
      continue;
    }
    const { refund_due: why, refund_due_since: since, transaction } = payment;
    const { service_id, job_index, network, asset, symbol, decimals } = payment;
    const {
      amount: paid_amount,
      refunded_amount,
      payer,
      pay_to,
      block_number,
      call_id,
      quote_source,
    } = payment;
    const amount = String(BigInt(paid_amount) - BigInt(refunded_amount));
    const amounts = { amount, paid_amount, refunded_amount };
    const found = { service_id, job_index, network, asset, symbol, decimals, ...amounts, payer, pay_to };
    const facts = { ...found, transaction, block_number, call_id, quote_source, why, since };
    if (Object.entries(facts).some(([name, value]) => row[name as keyof typeof facts] !== value))
      contradicted.push(row.seq);
    if (changedQuotes.has(row.quote_digest)) continue;
    const quote = quoteStates.get(row.quote_digest);
    const asked = quote && (await readAsked({ db: queriesOn(pool) }, row.quote_digest, quote));
    const requested = asked ? { at: asked.at, reason: asked.reason ?? null } : null;
    rows.push({ ...row, ...facts, under_way: underWay(row, quote?.payment?.refunding), requested });
  }
  return { asOfSeq, rows, contradicted, changed, listed: listed.map(({ seq }) => seq) };
}

/** The refund of a payment that is started. */
function underWay(
  { since, age_secs: ageSecs }: RefundDueRow,
  refunding: Refunding | undefined,
): StartedRefundRow | null {
  if (!refunding) return null;
  const { at, operator, sender, senderNonce, transaction } = refunding;
  // the clock of the list is the database's: the refund is due since `since`, for `age_secs`
  const laterSecs = Math.floor((Date.parse(at) - Date.parse(since)) / 1_000);
  return {
    since: at,
    age_secs: Math.max(0, ageSecs - laterSecs),
    operator,
    sender: sender ?? null,
    sender_nonce: senderNonce ?? null,
    transaction: transaction ?? null,
  };
}

/**
 * Payments whose refund is due by the events, but whose row in the read model is absent or has another reason or time. So no list
 * has them, by the events that started them. Reads the types of all events, and whole streams if a refund may be due; with an attestation of
 * the events after it alone.
 */
export function findUnlistedRefunds(pool: pg.Pool, attested?: Attested): Promise<number[]> {
  return withStoredRows(pool, async (snapshot) => {
    const streams = await findStreamsThatMayOwe(snapshot, attested?.size);
    const unlisted: number[] = [];
    for (const chunk of chunksOf(streams, streamsAtOnce)) {
      const due = (await readStreamsUpTo(snapshot.client, chunk, snapshot.seq))
        .flatMap((events) => paymentRowsOf(events).payments)
        .filter(({ refund_due: why }) => why !== null);
      const stored = await readStoredDues(
        snapshot,
        due.map(({ seq }) => seq),
      );
      for (const { seq, refund_due: why, refund_due_since: since } of due)
        if (stored.get(seq)?.why !== why || stored.get(seq)?.since !== since) unlisted.push(seq);
    }
    return unlisted.toSorted((a, b) => a - b);
  });
}

import { foldQuote, type QuoteState } from '../../../payments/rules/quote-state.ts';
import { type RefundRequestState, refundRequestState } from '../../../payments/rules/refund.ts';
import { findRefundReason, listRefundRequests } from '../../../payments/store/refund-requests.ts';
import type { Ledger } from '../../../ledger/store/ledger.ts';
import { readStream } from '../../../ledger/store/streams.ts';

/** What the payer of a quote has asked for. */
export interface AskedRefund {
  readonly state: RefundRequestState;
  /** RFC 3339. */
  readonly at: string;
  /** The payer's own words, which may be anything; undefined once they are deleted. */
  readonly reason: string | undefined;
}

/** What the payer of a quote has asked for, by its events; undefined if it has not. */
export async function readAsked(
  { db }: Pick<Ledger, 'db'>,
  digest: string,
  { payment }: QuoteState,
): Promise<AskedRefund | undefined> {
  const state = payment && refundRequestState(payment);
  if (!state || !payment.refundRequest) return undefined;
  const { at, reasonSha256 } = payment.refundRequest;
  return { state, at, reason: await findRefundReason(db, digest, reasonSha256) };
}

export type ListedRequest = Awaited<ReturnType<typeof listRefundRequests>>[number] & {
  readonly asked: AskedRefund;
};

/** The requests that an operator has to decide or to pay, the oldest first. */
export async function listRequests(
  ledger: Pick<Ledger, 'pool' | 'db'>,
  limit: number,
): Promise<readonly ListedRequest[]> {
  const listed: ListedRequest[] = [];
  for (const row of await listRefundRequests(ledger.db, limit)) {
    const { events } = await readStream(ledger.pool, row.quote_digest);
    const asked = await readAsked(ledger, row.quote_digest, foldQuote(events));
    if (asked) listed.push({ ...row, asked });
  }
  return listed;
}

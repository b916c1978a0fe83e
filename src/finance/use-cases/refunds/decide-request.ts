import { findCall } from '../../../calls/store/calls.ts';
import { grant, type Wish, type WishRefusal } from '../../../payments/rules/deliver-or-refund.ts';
import { foldQuote } from '../../../payments/rules/quote-state.ts';
import { hasToppedUp } from '../../../jobs/use-cases/top-ups/top-up.ts';
import type { Hex } from '../../../base/values/primitives.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import type { Ledger } from '../../../ledger/store/ledger.ts';
import { type Refused, refused, tryAgain } from './final-transfers.ts';

/** What an operator says to the payer of a quote who asks for a refund. */
export type RequestDecision = { readonly quoteDigest: Hex; readonly operator: string } & (
  | { readonly kind: 'grant' }
  | { readonly kind: 'decline'; readonly why: string }
);

export type DecisionRefusal =
  /** Its payer has not asked, or the request was decided, or its call was delivered since. */
  | 'not_requested'
  /** It is due whatever is decided. */
  | 'refund_due'
  | 'refunded'
  /** Its settlement is open again. */
  | 'unpaid'
  /** A runner, or a request of the payer, has the call now, or the credit that it buys was given: it may be delivered at any moment. */
  | 'with_runner'
  | 'superseded';

/** What refused a decision, in words. */
export const decisionRefusalTexts: Readonly<Record<DecisionRefusal, string>> = {
  not_requested: 'no request of its payer waits for a decision',
  refund_due: 'its refund is due whatever is decided: refund the payer, or send the call again',
  refunded: 'its payment was refunded',
  unpaid: 'its payment is not settled at present',
  with_runner: 'its call is being executed now and may be delivered: decide again once that has ended',
  superseded: 'something else was recorded of it meanwhile: look at it again',
};

/**
 * Records what an operator says to a request: granted, the refund is due, and a call that still waits is given up in the same append, so that
 * it is delivered or refunded and never both; declined, nothing else changes.
 */
export async function decideRequest(
  { pool, db, lane }: Ledger,
  decision: RequestDecision,
): Promise<{ readonly kind: 'decided' } | Refused<DecisionRefusal>> {
  const { quoteDigest: stream, operator } = decision;
  return tryAgain(async () => {
    const { payment, version } = foldQuote((await readStream(pool, stream)).events);
    if (!payment) return refused('not_requested');
    const waiting = payment.call?.status === 'completed' ? undefined : payment.call?.callId;
    const call = waiting === undefined ? undefined : await findCall(db, waiting);
    const wish: Wish =
      decision.kind === 'grant'
        ? { kind: 'grant_request', operator, attempt: call?.attempt ?? 0 }
        : { kind: 'decline_request', operator, why: decision.why };
    const granted = grant(payment, wish);
    if (granted.kind === 'refused') return refused(codes[granted.why.kind]);
    // only the end of such a call is missing: given up, its payer would have the credit and the money
    if (decision.kind === 'grant' && waiting !== undefined && (await hasToppedUp({ pool }, waiting)))
      return refused('with_runner');
    const { outcome } = await lane.append({
      stream,
      expect: version,
      events: granted.events,
      ...(decision.kind === 'grant' && waiting !== undefined && { call: { op: 'discard', callId: waiting } }),
    });
    if (outcome === 'ok') return { kind: 'decided' };
    return refused(outcome === 'stale' ? 'superseded' : 'with_runner');
  });
}

const codes: Readonly<Record<WishRefusal['kind'], DecisionRefusal>> = {
  unpaid: 'unpaid',
  refunded: 'refunded',
  refund_due: 'refund_due',
  not_requested: 'not_requested',
  call_open: 'with_runner',
  delivered: 'not_requested',
  requested_before: 'not_requested',
  refund_under_way: 'refund_due',
  not_started: 'not_requested',
  said_before: 'not_requested',
};

import { nameOf, paymentSummary } from '../../payments/rules/payment.ts';
import type { Hex } from '../../base/values/primitives.ts';
import {
  foldQuote,
  jobOf,
  type PaymentState,
  paymentOf,
  type QuoteState,
} from '../../payments/rules/quote-state.ts';
import type { KnownPayment, PaymentLookup } from '../../payments/store/payment-lookup.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { acceptedAnswer, type PaymentAnswer, type ReceiptPorts } from './answer.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { PaidRequest } from './job-request.ts';
import type { Unanswered } from './routes/route-request.ts';
import { isOfferSecret } from '../../payments/use-cases/receipt-keys.ts';
import { lookAtFailed, type LookPorts } from '../../payments/use-cases/resolve-settlement.ts';
import { pause } from '../../base/runtime/pause.ts';
import { within } from '../../base/runtime/within.ts';

export interface KnownPorts extends LookPorts, ReceiptPorts {
  readonly lookup: PaymentLookup;
  /** Payments that this process is settling now, by stream: a repeated request waits for the same outcome. */
  readonly settling: ReadonlyMap<string, Promise<unknown>>;
  readonly tooLate: () => boolean;
  readonly log: OperatorLog;
}

/** What the ledger says about a payment. */
export type KnownPaymentResult =
  /** Never claimed; with the quote that it names. */
  | { readonly kind: 'not_known'; readonly lookUp: KnownPayment }
  | { readonly kind: 'answered'; readonly answer: PaymentAnswer }
  /** It failed before broadcast, and the chain shows no transfer: its payer may sign another. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** It was sent before with another request. */
  | { readonly kind: 'replay' }
  /** Nothing settles it before its upstream has answered, and the process that asked is gone. Its client has shown that it is its own. */
  | ({ readonly kind: 'unanswered' } & Unanswered)
  /** The ledger had lost it. Its refund is due or on record; until it is started its payer may ask for delivery. */
  | { readonly kind: 'recovered'; readonly digest: Hex };

/** A request with a payment, as far as a known payment's answer depends on it. */
export type SentRequest = Pick<PaidRequest, 'binding' | 'redeliverySignature' | 'decoded'>;

const pollMs = 250;
/** How long a repeated request waits for the outcome before its answer is `settlement_pending`. */
const waitTimeoutMs = 20_000;

/**
 * Reads a payment's claims and the quote it names, in one query, and answers a known payment only from its own state, whatever price,
 * policy, quote or limit applies now. While it is being settled, in this process or another, waits for the outcome.
 */
export async function answerKnownPayment(
  context: KnownPorts,
  sent: SentRequest,
): Promise<KnownPaymentResult> {
  const { decoded } = sent;
  const lookUp = await context.lookup.find(nameOf(decoded), decoded.terms?.quoteDigest);
  // one nonce may have been signed for two tokens: the one that paid for this request answers it
  const results = await Promise.all(
    lookUp.streams.map((stream) => answerFromStream(context, stream as Hex, sent)),
  );
  return results.find(({ kind }) => kind !== 'replay') ?? results[0] ?? { kind: 'not_known', lookUp };
}

async function answerFromStream(
  context: KnownPorts,
  digest: Hex,
  sent: SentRequest,
): Promise<KnownPaymentResult> {
  const deadline = Date.now() + waitTimeoutMs;
  for (;;) {
    const { events, nowSecs } = await readStream(context.pool, digest);
    const state = foldQuote(events);
    const known = paymentOf(state, nameOf(sent.decoded));
    if (!known) throw new Error('a claimed payment is missing from its stream');
    // until its payer asks for delivery no request is bound to a recovered payment
    const bound = known.recovered ? known.recovered.redelivery : known;
    if (!bound && known.status === 'settled') return { kind: 'recovered', digest };
    if (bound && bound.binding !== sent.binding) return { kind: 'replay' };
    const own = (): boolean => isOwn(context, digest, known, sent);
    if (known.status === 'settlement_failed') {
      const look = await lookAtFailed(context, digest, state, known);
      if (look === 'landed') continue;
      // a look at the chain is not free, as the answer of another known payment is
      if (look === 'unsure') return { kind: 'answered', answer: pendingAnswer(digest, own(), false) };
    }
    const isAsked = known.status === 'authorized' && nowSecs < (known.upstream?.endsAt ?? 0);
    if (known.status === 'authorized' && !isAsked && own())
      return { kind: 'unanswered', digest, state, known };
    if ((known.status !== 'settling' && !isAsked) || Date.now() > deadline || context.tooLate())
      return resultOf(context, digest, state, known, own());
    const remainingMs = Math.max(0, deadline - Date.now());
    await within(remainingMs, context.settling.get(digest) ?? pause(pollMs));
  }
}

function resultOf(
  context: KnownPorts,
  digest: Hex,
  state: QuoteState,
  known: PaymentState,
  own: boolean,
): KnownPaymentResult {
  switch (known.status) {
    case 'authorized':
    case 'settling':
    case 'settlement_unknown':
      return { kind: 'answered', answer: pendingAnswer(digest, own) };
    case 'settlement_failed':
      return { kind: 'failed', reason: known.reason ?? 'settlement_failed' };
    case 'settled': {
      // it landed after its call had been given up
      if (!known.call && !known.recovered) return { kind: 'recovered', digest };
      // its delivery was requested at this moment
      if (!known.call) return { kind: 'answered', answer: pendingAnswer(digest, own) };
      const answer = own
        ? acceptedOnRecord(context, digest, state, known, true)
        : ({ kind: 'unproven', status: 'accepted' } as const);
      return { kind: 'answered', answer };
    }
  }
}

function pendingAnswer(digest: Hex, own: boolean, replayed = true): PaymentAnswer {
  return own ? { kind: 'pending', digest, replayed } : { kind: 'unproven', status: 'pending' };
}

/**
 * Whether the client has shown that the payment is its own: by the secret of the offer that it paid, or by the payer's signature
 * that asked for a redelivery. Everything else about a landed payment can be read on the chain or guessed.
 */
function isOwn(
  { receiptKeys, log }: KnownPorts,
  digest: Hex,
  { recovered }: PaymentState,
  { decoded, redeliverySignature }: SentRequest,
): boolean {
  const { offerSecret } = decoded.terms ?? {};
  const redelivery = recovered?.redelivery;
  // the stream of a recovered payment is not named by the quote that its payer has signed for
  const quote = (redelivery?.quote_digest ?? digest) as Hex;
  if (offerSecret !== undefined && isOfferSecret(receiptKeys, quote, offerSecret, log)) return true;
  return redelivery !== undefined && redeliverySignature?.toLowerCase() === redelivery.signature;
}

/** The 202 of a payment that is settled on record, for a client that has shown that the payment is its own. */
export function acceptedOnRecord(
  context: KnownPorts,
  digest: Hex,
  state: QuoteState,
  known: PaymentState,
  replayed: boolean,
): PaymentAnswer {
  const job = jobOf(state);
  if (!job || !known.call || !known.settled) throw new Error('a settled payment has no call');
  const { at: settledAt } = known.settled;
  const { callId } = known.call;
  const payment = paymentSummary(known.payment, known.settled);
  const x402Version = known.recovered?.redelivery?.x402_version ?? known.payment.x402_version;
  return acceptedAnswer(
    context,
    { digest, job, callId, payment, x402Version, replayed },
    { settledAt, isRefunded: known.isRefunded },
  );
}

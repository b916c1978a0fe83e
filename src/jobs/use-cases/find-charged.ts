import type { DecodedPayment } from '../../payments/rules/decode-payment.ts';
import {
  matchOption,
  type PaymentToken,
  readSignedPayment,
  type SignedPayment,
  tokensOfPayment,
} from '../../payments/rules/payment.ts';
import { fullOptions, optionFromJson, type SettlementOption } from '../../payments/rules/quote.ts';
import type { Proof } from '../../payments/rules/settlement.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { KnownPayment } from '../../payments/store/payment-lookup.ts';
import { recoverPayment } from '../../payments/store/recover-payment.ts';
import { checkSignature } from '../../payments/use-cases/payer-signature.ts';
import type { JobsContext } from './context.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { findLanded, mayBeOfOffer } from '../../payments/use-cases/find-settlement.ts';
import type { JobHead } from './job-request.ts';
import { readNamedQuote } from './match-quote.ts';

/** How a payment is refused whose payer is charged, or may be. */
export type ChargedCode = 'payment_recovered' | 'payment_unrecorded' | 'payment_use_unknown';

/** A payment that is refused. */
export interface RefusedPayment {
  readonly job: JobHead['job'];
  readonly decoded: DecodedPayment;
  /** Why it is refused: a machine-readable code. */
  readonly code: string;
}

/**
 * How to refuse a payment that no event names although its payer may have been charged: any account may send a signed
 * authorization to the chain, and a ledger that lost its last events knows neither the quote nor the payment. A payer who is told
 * nothing of it signs again and pays twice. Where the payment proves that this ledger has made its offer, its transfer is recorded, and its
 * refund is due. Any other may be of another ledger with the same payee, which has delivered it. Undefined where it was not charged.
 */
export async function findCharged(
  context: JobsContext,
  refused: RefusedPayment,
  lookUp: KnownPayment,
): Promise<ChargedCode | undefined> {
  const { decoded } = refused;
  const offered = findOffered(context, refused, lookUp);
  // a version 1 payment does not name its token: the one that it was signed for is looked up
  const tokens = offered ? [offered.option] : tokensOfPayment(decoded, context.settings.acceptedTokens);
  for (const token of tokens) {
    const charged = await findChargedIn(context, refused, token, offered);
    if (charged !== undefined) return charged;
  }
  return undefined;
}

/** What this ledger has offered, and when, in Unix seconds. */
interface Offered {
  readonly option: SettlementOption;
  readonly atSecs: number;
}

/** The option of this ledger's own quote that the payment names, expired or not. */
function findOffered(
  context: JobsContext,
  { job, decoded }: RefusedPayment,
  { quote: reading }: KnownPayment,
): Offered | undefined {
  if (!job || decoded.terms?.quoteDigest === undefined) return undefined;
  const { quote } = readNamedQuote(context, job, decoded, reading).state;
  const option = quote && matchOption(decoded, fullOptions(quote).map(optionFromJson));
  return option && { option, atSecs: quote.issued_at };
}

async function findChargedIn(
  context: JobsContext,
  refused: RefusedPayment,
  token: PaymentToken,
  offered: Offered | undefined,
): Promise<ChargedCode | undefined> {
  const { decoded } = refused;
  const payment = readSignedPayment(decoded, token);
  const chain = context.chains.get(decoded.network);
  if (!chain || !payment || payment.payTo !== token.payTo) return undefined;
  const signed = await checkSignature(context, payment);
  if (signed.kind !== 'signed') return signed.kind === 'unavailable' ? 'payment_use_unknown' : undefined;
  const atSecs = offered?.atSecs ?? Math.min(nowSecs(context), Number(payment.validBefore));
  const landing = await findLanded(chain, payment, atSecs);
  switch (landing.kind) {
    case 'landed': {
      const { transaction, proof } = landing.settlement;
      if (!proof || !isOfThisLedger(context, refused, payment, proof, offered)) return 'payment_unrecorded';
      return recordCharged(context, refused, payment, { transaction, proof });
    }
    case 'unsure':
      return 'payment_use_unknown';
    case 'not_landed':
      return undefined;
  }
}

/**
 * Whether a landed payment was meant for this ledger: it pays what that has offered, and is not older than the offer. Version 1 names no
 * offer. Of a payee that another ledger has as well nothing is taken: both may have offered the same, and one of them has delivered.
 */
function isOfThisLedger(
  context: JobsContext,
  { decoded }: RefusedPayment,
  { amount }: SignedPayment,
  proof: Proof,
  offered: Offered | undefined,
): boolean {
  if (!context.settings.payToExclusive) return false;
  if (!decoded.terms) return true;
  return offered?.option.amount === amount && mayBeOfOffer(proof, offered.atSecs, nowSecs(context));
}

/** Records a refused payment that has landed. What a recovery still searches, it records itself. */
async function recordCharged(
  context: JobsContext,
  { decoded, code }: RefusedPayment,
  payment: SignedPayment,
  { transaction, proof }: { readonly transaction: Hex; readonly proof: Proof },
): Promise<ChargedCode> {
  if (await context.lostPayments.mayHold(payment, context.settings.maxTimeoutSecs))
    return 'payment_unrecorded';
  const quoteDigest = decoded.terms?.quoteDigest;
  const refused = {
    code,
    valid_before: String(payment.validBefore),
    ...(quoteDigest === undefined ? {} : { quote_digest: quoteDigest }),
  };
  const command = recoverPayment({ ...payment, transaction, place: proof }, { refused });
  const { outcome } = await context.lane.append(command, { urgent: true });
  if (outcome !== 'ok') return 'payment_unrecorded';
  context.log.warn(
    { payer: payment.payer, transaction, code },
    'a payment was refused, and the chain shows that it has landed: its refund is due',
  );
  return 'payment_recovered';
}

import { paymentFromData, type PaymentName } from '../../payments/rules/payment.ts';
import { foldQuote, paidPayment } from '../../payments/rules/quote-state.ts';
import { type ReceiptRequest, receiptRequestDigest } from '../../payments/rules/payer-signatures.ts';
import { transferMethods } from '../../base/values/transfer-method.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { readStream } from '../../ledger/store/streams.ts';
import type { JobsContext } from './context.ts';
import { nowSecs } from '../../ledger/store/ledger.ts';
import { checkPayerSignature } from '../../payments/use-cases/payer-signature.ts';
import { isReceiptChallenge, receiptChallenge, receiptToken } from '../../payments/use-cases/receipt-keys.ts';

/** How long a payer has to sign. */
const challengeSecs = 300;

/** A payment as its payer names it. */
export type NamedPayment = Pick<ReceiptRequest, 'network' | 'asset' | 'payer' | 'nonce'>;

/** The payer's answer to a challenge. */
export interface SignedChallenge {
  readonly challenge: Hex;
  readonly expiresAt: number;
  readonly signature: string;
}

export type ReceiptAccess =
  /** There is no such receipt, or nothing was paid for it. */
  | { readonly kind: 'not_found' }
  /** To be signed by the payer: the request carries no signature yet, or it has expired. */
  | { readonly kind: 'challenged'; readonly request: ReceiptRequest }
  | { readonly kind: 'not_signed' }
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'opened'; readonly digest: Hex; readonly receiptToken: string };

/** Gives the token of a quote's receipt to the payer of its payment. */
export async function openReceipt(
  context: JobsContext,
  digest: Hex,
  signed: SignedChallenge | undefined,
): Promise<ReceiptAccess> {
  const payment = await readPaid(context, digest);
  if (!payment) return { kind: 'not_found' };
  const checked = await checkSigned(context, { ...payment, quoteDigest: digest }, signed);
  return checked.kind === 'signed' ? opened(context, digest) : checked;
}

/**
 * The same for a payer who does not know the digest: of a version 1 payment, or after the answer was lost. Says nothing about
 * the payment before its payer has signed.
 */
export async function openReceiptOfPayment(
  context: JobsContext,
  payment: NamedPayment,
  signed: SignedChallenge | undefined,
): Promise<ReceiptAccess> {
  const checked = await checkSigned(context, { ...payment, quoteDigest: undefined }, signed);
  if (checked.kind !== 'signed') return checked;
  for (const transferMethod of transferMethods) {
    const name: PaymentName = { ...payment, transferMethod };
    const { streams } = await context.lookup.find(name, undefined);
    for (const stream of streams as Hex[]) {
      const paid = await readPaid(context, stream);
      if (paid?.payer === payment.payer && paid.nonce === payment.nonce) return opened(context, stream);
    }
  }
  return { kind: 'not_found' };
}

function opened({ receiptKeys }: JobsContext, digest: Hex): ReceiptAccess {
  return { kind: 'opened', digest, receiptToken: receiptToken(receiptKeys, digest) };
}

/** The payment that a receipt reports, if it has settled. */
async function readPaid({ pool }: JobsContext, digest: Hex): Promise<NamedPayment | undefined> {
  const paid = paidPayment(foldQuote((await readStream(pool, digest)).events));
  if (!paid) return undefined;
  const { network, asset, payer, nonce } = paymentFromData(paid.payment);
  return { network, asset, payer, nonce };
}

type Unsigned = Exclude<ReceiptAccess, { kind: 'not_found' | 'opened' }>;

async function checkSigned(
  context: JobsContext,
  of: Omit<ReceiptRequest, 'challenge' | 'expiresAt' | 'gateway'>,
  signed: SignedChallenge | undefined,
): Promise<{ readonly kind: 'signed' } | Unsigned> {
  const now = nowSecs(context);
  const { receiptKeys, publicUrl, log } = context;
  const terms = { ...of, gateway: publicUrl() };
  const given = signed && { ...terms, challenge: signed.challenge, expiresAt: signed.expiresAt };
  if (!given || given.expiresAt <= now || !isReceiptChallenge(receiptKeys, given, log)) {
    const fresh = { ...terms, expiresAt: now + challengeSecs };
    return { kind: 'challenged', request: { ...fresh, challenge: receiptChallenge(receiptKeys, fresh) } };
  }
  const { network, payer } = of;
  const digest = receiptRequestDigest(given);
  const { kind } = await checkPayerSignature(context, {
    network,
    payer,
    digest,
    signature: signed.signature,
  });
  return kind === 'malformed' ? { kind: 'not_signed' } : { kind };
}

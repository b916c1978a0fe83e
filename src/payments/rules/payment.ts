import { sha256 } from '../../base/values/sha256.ts';
import { parseSignature, recoverSigner } from '../../base/values/ethereum-signature.ts';
import { canonicalJson } from '../../base/values/canonical-json.ts';
import type { DecodedPayment } from './decode-payment.ts';
import type { SignedPaymentData } from '../../ledger/rules/payment-events.ts';
import { type Address, type Caip2, type Hex, parseAddress } from '../../base/values/primitives.ts';
import type { PaymentWindow } from './payment-window.ts';
import type { SettlementOption } from './quote.ts';
import type { InvalidPayment, SchemePayment, SignedTerms } from './schemes/scheme.ts';
import { schemes } from './schemes/schemes.ts';
import type { TransferMethod } from '../../base/values/transfer-method.ts';
import { type JobId, jobKey } from '../../base/values/job.ts';

/** Identifies a payment, however its text was spelt: unique among the ledger's claims. */
export interface Fingerprint {
  readonly network: Caip2;
  readonly transferMethod: TransferMethod;
  readonly asset: Address;
  readonly payer: Address;
  readonly nonce: Hex;
}

/** A payment whose every field was checked against its quote's option. Amounts and times as integers. */
export interface SignedPayment extends Fingerprint, SchemePayment {
  readonly x402Version: 1 | 2;
  readonly symbol: string;
  readonly decimals: number;
  readonly maxTimeoutSecs: number;
}

/**
 * The option that a version 2 payment means, however its addresses are spelt; undefined if it is none of them, and for a version 1
 * payment, which names no token.
 */
export function matchOption(
  decoded: DecodedPayment,
  options: readonly SettlementOption[],
): SettlementOption | undefined {
  const { terms } = decoded;
  if (!terms || !hasOwnScheme(decoded)) return undefined;
  return tokensOfPayment(decoded, options).find(
    (option) => parseAddress(terms.payTo) === option.payTo && terms.amount === String(option.amount),
  );
}

/** Whether a payment names the scheme that its payload is of. */
export function hasOwnScheme({ scheme, transferMethod }: DecodedPayment): boolean {
  return scheme === schemes[transferMethod].x402Scheme;
}

/** Whether a payer has signed the transfer of that many atoms: of exactly an amount, or of at most it (`upto`). */
export function isSignedAmount(
  { signedAmount, isAtMost }: { readonly signedAmount: bigint; readonly isAtMost: boolean },
  atoms: bigint,
): boolean {
  return isAtMost ? atoms > 0n && atoms <= signedAmount : atoms === signedAmount;
}

/** A token as its payer's signature names it. */
export type PaymentToken = Omit<SettlementOption, 'amount' | 'creditMicros'>;

/** The tokens of a configuration with every method that they may be paid by: each also by `upto`. */
export function payableTokens<T extends PaymentToken>(tokens: readonly T[]): T[] {
  return tokens.flatMap((token) => [token, { ...token, transferMethod: 'upto' }]);
}

/**
 * The tokens that a payment may mean, whatever else it agrees to: enough to read what its payer signed. A version 1 payment names no
 * asset: each token of its network.
 */
export function tokensOfPayment<T extends PaymentToken>(
  { network, transferMethod, terms }: DecodedPayment,
  tokens: readonly T[],
): T[] {
  return tokens.filter(
    (token) =>
      token.network === network &&
      token.transferMethod === transferMethod &&
      (terms === undefined || token.asset === terms.asset),
  );
}

/**
 * Checks a payment against the option it means: exact spelling, payee, value and time.
 * Returns the reason code of the first fault.
 */
export function checkPayment(
  decoded: DecodedPayment,
  option: SettlementOption,
  window: PaymentWindow,
): SignedPayment | InvalidPayment {
  const checked = schemes[decoded.transferMethod].check(decoded.payload, option, window);
  return 'invalid' in checked ? checked : signedPayment(decoded, option, checked, window.maxTimeoutSecs);
}

/**
 * A signed payment, whether or not it is valid: to check whose signature it is.
 * Undefined if its fields are malformed.
 */
export function readSignedPayment(decoded: DecodedPayment, token: PaymentToken): SignedPayment | undefined {
  const terms = schemes[decoded.transferMethod].readTerms(decoded.payload);
  return terms && signedPayment(decoded, token, terms, 0);
}

function signedPayment(
  { transferMethod, payer, nonce, x402Version }: DecodedPayment,
  { network, asset, symbol, decimals, eip712Name, eip712Version }: PaymentToken,
  terms: SignedTerms,
  maxTimeoutSecs: number,
): SignedPayment {
  const token = { network, asset, symbol, decimals, eip712Name, eip712Version };
  return { ...token, ...terms, transferMethod, payer, nonce, x402Version, maxTimeoutSecs };
}

/**
 * Whether an ordinary account's signature is the payer's own. False also for contract accounts: only their contract can
 * tell.
 */
export function isSignedByPayer(payment: SignedPayment): boolean {
  const signature = parseSignature(payment.signature);
  if (!signature) return false;
  return recoverSigner(schemes[payment.transferMethod].digest(payment), signature) === payment.payer;
}

/**
 * The ERC-20 transfer that settles a payment, and how its payer authorized it. Addresses and nonce in lower case; `value` in the token's
 * atoms.
 */
export interface ExpectedTransfer {
  readonly transferMethod: TransferMethod;
  readonly asset: Address;
  readonly from: Address;
  readonly payTo: Address;
  readonly value: bigint;
  readonly nonce: Hex;
}

export function expectedTransfer(payment: SignedPayment): ExpectedTransfer {
  const { transferMethod, asset, payer: from, payTo, amount: value, nonce } = payment;
  return { transferMethod, asset, from, payTo, value, nonce };
}

/** A payer's nonce is unique within its network, its transfer method and, where the scheme says so, its asset: that part. */
export function noncePart({ transferMethod }: Pick<Fingerprint, 'transferMethod'>, asset: string): string {
  return schemes[transferMethod].nonceScope(asset);
}

/** The request that a payment pays for. A signature binds money, not a request: the hash of this does. */
export interface RequestBinding {
  readonly method: string;
  readonly path: string;
  readonly bodySha256: Hex;
  readonly caller: Address | undefined;
  readonly callerNonce: string | undefined;
  /** Where the client wants to be called at the end. */
  readonly callbackUrl?: string | undefined;
}

export function bindingHash(binding: RequestBinding): Hex {
  const { method, path, bodySha256, caller, callerNonce, callbackUrl } = binding;
  const callback = callbackUrl === undefined ? [] : [callbackUrl];
  return sha256(canonicalJson([method, path, bodySha256, caller ?? null, callerNonce ?? null, ...callback]));
}

/** The payment as `settlement_started` keeps it: all that is needed to settle it again. */
export function paymentToData(payment: SignedPayment): SignedPaymentData {
  return {
    x402_version: payment.x402Version,
    transfer_method: payment.transferMethod,
    network: payment.network,
    asset: payment.asset,
    symbol: payment.symbol,
    decimals: payment.decimals,
    pay_to: payment.payTo,
    amount: String(payment.amount),
    payer: payment.payer,
    nonce: payment.nonce,
    valid_after: String(payment.validAfter),
    valid_before: String(payment.validBefore),
    signature: payment.signature,
    max_timeout_secs: payment.maxTimeoutSecs,
    eip712_name: payment.eip712Name,
    eip712_version: payment.eip712Version,
    ...(payment.submitter === undefined ? {} : { submitter: payment.submitter }),
  };
}

/** The inverse of {@link paymentToData}: a payment can be finished only from the ledger. */
export function paymentFromData(data: SignedPaymentData): SignedPayment {
  return {
    x402Version: data.x402_version,
    transferMethod: data.transfer_method,
    network: data.network as Caip2,
    asset: data.asset as Address,
    symbol: data.symbol,
    decimals: data.decimals,
    payTo: data.pay_to as Address,
    amount: BigInt(data.amount),
    payer: data.payer as Address,
    nonce: data.nonce as Hex,
    validAfter: BigInt(data.valid_after),
    validBefore: BigInt(data.valid_before),
    signature: data.signature as Hex,
    maxTimeoutSecs: data.max_timeout_secs,
    eip712Name: data.eip712_name,
    eip712Version: data.eip712_version,
    ...(data.submitter === undefined ? {} : { submitter: data.submitter as Address }),
  };
}

/** A payment as its header names it: version 1 leaves the asset open. */
export type PaymentName = Omit<Fingerprint, 'asset'> & {
  readonly asset: Fingerprint['asset'] | undefined;
};

export function nameOf({ network, transferMethod, payer, nonce, terms }: DecodedPayment): PaymentName {
  return { network, transferMethod, payer, nonce, asset: terms?.asset };
}

/** The fields by which an event names a payment of its stream. */
export function ofPayment({ network, asset, payer, nonce }: Fingerprint) {
  return { network, asset, payer, payment_nonce: nonce };
}

/** The part of a settled payment that its client sees: what was moved, which is less than was signed only by `upto`. */
export function paymentSummary(
  { network, asset, symbol, decimals, payer }: SignedPaymentData,
  { amount, transaction }: { readonly amount: string; readonly transaction: string },
) {
  return { network, asset, symbol, decimals, amount, payer, transaction };
}

/** What a payment buys: a job with a body. */
export interface BoughtCall {
  /** The hash of the payment's fingerprint, hex with 0x. */
  readonly payment: string;
  readonly job: JobId;
  readonly bodySha256: string;
}

/**
 * The idempotency key of a paid call. A payment that the ledger lost, and that its payer has delivered for another body or job, has another
 * key: no runner takes that call for one that it knows. Its text begins with a hash, and that of a firing with a bracket: none has the key of the other.
 */
export function paidCallKey({ payment, job, bodySha256 }: BoughtCall): Hex {
  return sha256(`${payment}/${jobKey(job)}/${bodySha256}`);
}

import { createHash } from 'node:crypto';
import { authorizationDigest } from './schemes/eip3009/authorization-digest.ts';
import { canonicalJson } from '../values/canonical-json.ts';
import type { DecodedPayment } from './decode-payment.ts';
import type { SignedPaymentData } from '../events/event.ts';
import { type Address, type Caip2, type Hex, parseAddress } from '../values/primitives.ts';
import type { SettlementOption } from './quote.ts';
import { parseSignature, recoverSigner } from '../values/ethereum-signature.ts';

/** The one name of an authorization, however its text was spelt: unique among the ledger's claims. */
export interface Fingerprint {
  readonly network: Caip2;
  readonly transferMethod: 'eip3009';
  readonly asset: Address;
  readonly payer: Address;
  readonly nonce: Hex;
}

/** A payment whose every field was checked against its quote's option. Amounts and times as integers. */
export interface SignedPayment extends Fingerprint {
  readonly x402Version: 1 | 2;
  readonly symbol: string;
  readonly decimals: number;
  readonly payTo: Address;
  readonly amount: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly signature: Hex;
  readonly maxTimeoutSecs: number;
  readonly eip712Name: string;
  readonly eip712Version: string;
}

/** The times a payment is held against, in Unix seconds and seconds. */
export interface PaymentWindow {
  readonly nowSecs: number;
  readonly maxTimeoutSecs: number;
  /** What settling may take, the facilitator's own margin included. */
  readonly settleMarginSecs: number;
}

/** Clocks of honest payers run ahead by up to this. */
const clockSkewSecs = 60;

/**
 * The option that a payment means, however its addresses are spelt; undefined where it is none of them.
 * A version 1 payment can only mean the first option of its network.
 */
export function matchOption(
  decoded: DecodedPayment,
  options: readonly SettlementOption[],
): SettlementOption | undefined {
  const { terms } = decoded;
  if (decoded.scheme !== 'exact') return undefined;
  const ofNetwork = options.filter(({ network }) => network === decoded.network);
  if (!terms) return ofNetwork[0];
  return ofNetwork.find(
    (option) =>
      terms.asset === option.asset &&
      parseAddress(terms.payTo) === option.payTo &&
      terms.amount === String(option.amount),
  );
}

const payloadKeys = new Set(['signature', 'authorization']);
const authorizationKeys = new Set(['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce']);
const decimal = /^(?:0|[1-9]\d{0,77})$/;
const signatureHex = /^0x(?:[0-9a-fA-F]{2}){65,4096}$/;

/**
 * Checks a payment against the option it means: exact spelling, payee, value and time.
 * Returns the machine word of the first thing wrong.
 */
export function checkPayment(
  decoded: DecodedPayment,
  option: SettlementOption,
  window: PaymentWindow,
): SignedPayment | { readonly invalid: string } {
  const { payload, payer, nonce } = decoded;
  const { authorization } = payload;
  if (Object.keys(payload).some((key) => !payloadKeys.has(key))) return invalid('unknown_payload_field');
  if (Object.keys(authorization).some((key) => !authorizationKeys.has(key)))
    return invalid('unknown_payload_field');
  if (authorization.nonce !== nonce) return invalid('nonce_not_lower_case');
  for (const name of ['value', 'validAfter', 'validBefore'] as const) {
    if (!decimal.test(authorization[name])) return invalid('not_a_decimal');
  }
  if (!signatureHex.test(payload.signature)) return invalid('malformed_signature');
  if (parseAddress(authorization.to) !== option.payTo) return invalid('recipient_mismatch');
  if (BigInt(authorization.value) !== option.amount) return invalid('authorization_value_mismatch');
  const validAfter = BigInt(authorization.validAfter);
  const validBefore = BigInt(authorization.validBefore);
  const untimely = timeError(validAfter, validBefore, window);
  if (untimely) return invalid(untimely);
  return {
    network: option.network,
    transferMethod: 'eip3009',
    asset: option.asset,
    payer,
    nonce,
    x402Version: decoded.x402Version,
    symbol: option.symbol,
    decimals: option.decimals,
    payTo: option.payTo,
    amount: option.amount,
    validAfter,
    validBefore,
    signature: payload.signature.toLowerCase() as Hex,
    maxTimeoutSecs: window.maxTimeoutSecs,
    eip712Name: option.eip712Name,
    eip712Version: option.eip712Version,
  };
}

/**
 * A payment as it was signed, whether or not it is worth anything: to tell whose signature it is.
 * Undefined where its numbers are none.
 */
export function signedAsTold(decoded: DecodedPayment, option: SettlementOption): SignedPayment | undefined {
  const { authorization, signature } = decoded.payload;
  const payTo = parseAddress(authorization.to);
  const numbers = [authorization.value, authorization.validAfter, authorization.validBefore];
  if (!payTo || !numbers.every((text) => decimal.test(text)) || !signatureHex.test(signature))
    return undefined;
  return {
    ...option,
    x402Version: decoded.x402Version,
    transferMethod: 'eip3009',
    payer: decoded.payer,
    nonce: decoded.nonce,
    payTo,
    amount: BigInt(authorization.value),
    validAfter: BigInt(authorization.validAfter),
    validBefore: BigInt(authorization.validBefore),
    signature: signature.toLowerCase() as Hex,
    maxTimeoutSecs: 0,
  };
}

const invalid = (word: string): { readonly invalid: string } => ({ invalid: word });

/** Whether an authorization can still be settled, and not for longer than was offered. */
export function timeError(
  validAfter: bigint,
  validBefore: bigint,
  window: PaymentWindow,
): string | undefined {
  const now = BigInt(window.nowSecs);
  // the token wants a block time beyond it, not at it
  if (validAfter >= now) return 'authorization_not_yet_valid';
  if (validBefore <= now) return 'authorization_expired';
  if (validBefore < now + BigInt(window.settleMarginSecs)) return 'authorization_expires_too_soon';
  if (validBefore > now + BigInt(window.maxTimeoutSecs + clockSkewSecs))
    return 'authorization_valid_too_long';
  return undefined;
}

/**
 * Whether an ordinary account's signature over this EIP-3009 authorization is the payer's own.
 * False also for contract accounts: only their contract could tell.
 */
export function isSignedByPayer(payment: SignedPayment): boolean {
  const signature = parseSignature(payment.signature);
  if (!signature) return false;
  return recoverSigner(authorizationDigest(payment), signature) === payment.payer;
}

/** What a payment pays for. A signature binds money, not a request: this hash does. */
export interface RequestBinding {
  readonly method: string;
  readonly path: string;
  readonly bodySha256: Hex;
  readonly caller: Address | undefined;
  readonly callerNonce: string | undefined;
}

export function sha256(bytes: Uint8Array | string): Hex {
  return `0x${createHash('sha256').update(bytes).digest('hex')}`;
}

export function bindingHash(binding: RequestBinding): Hex {
  const { method, path, bodySha256, caller, callerNonce } = binding;
  return sha256(canonicalJson([method, path, bodySha256, caller ?? null, callerNonce ?? null]));
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
  };
}

/** The inverse of {@link paymentToData}, for whoever finishes a payment from the ledger alone. */
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
  };
}

/** A payment as its header names it: version 1 leaves the asset open. */
export type PaymentName = Pick<Fingerprint, 'network' | 'payer' | 'nonce'> & {
  readonly asset: Fingerprint['asset'] | undefined;
};

export function nameOf({ network, payer, nonce, terms }: DecodedPayment): PaymentName {
  return { network, payer, nonce, asset: terms?.asset };
}

/** Names a payment among the events of a stream. */
export function ofPayment({ network, asset, payer, nonce }: Fingerprint) {
  return { network, asset, payer, payment_nonce: nonce };
}

/** What a client is shown of its payment. */
export function paymentSummary(payment: SignedPaymentData, transaction: string) {
  const { network, asset, symbol, amount, payer } = payment;
  return { network, asset, symbol, amount, payer, transaction };
}

import type { z } from 'zod';
import type { Address, Caip2, Hex } from '../../../base/values/primitives.ts';
import type { PaymentWindow } from '../payment-window.ts';

/** What an offer asks for, as a scheme sees it. `amount` is in the token's atoms. */
export interface OfferTerms {
  readonly network: Caip2;
  readonly asset: Address;
  readonly payTo: Address;
  readonly amount: bigint;
  /** The token contract's own EIP-712 domain. Both empty if it has none. */
  readonly eip712Name: string;
  readonly eip712Version: string;
  /** The only account that may submit the transfer: of a facilitator. Of `upto` alone. */
  readonly submitter?: Address | undefined;
}

/** A payload that a scheme recognised but has not checked. A scheme extends it with what else it reads. */
export interface ParsedPayload {
  readonly payer: Address;
  /** 32 bytes in lower case, unique per payer within the scheme's nonce scope. */
  readonly nonce: Hex;
  /** The signed amount as the client spelt it. */
  readonly value: string;
  /** As the client spelt it. */
  readonly signature: string;
}

/** What a payer signed. Times are Unix seconds; from `validBefore` on the money cannot move. */
export interface SignedTerms {
  readonly payTo: Address;
  readonly amount: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  /** Lower case. */
  readonly signature: Hex;
  /** The only account that may submit the transfer, if the signature names one. */
  readonly submitter?: Address | undefined;
}

export interface SchemePayment extends OfferTerms, SignedTerms {
  readonly payer: Address;
  readonly nonce: Hex;
}

/** `invalid` is a reason code: lower-case letters, digits and underscores. */
export interface InvalidPayment {
  readonly invalid: string;
}

/**
 * One way in which a payer's signature moves money: everything about it that needs no I/O. What it reads on a chain is its
 * ChainScheme, in src/payments/peers/chain/schemes.
 */
export interface PaymentScheme {
  /** The `scheme` of x402 that its offers name. */
  readonly x402Scheme: string;

  /** For the API's description: `extra` of its offers, without the quote's digest, and its payload. */
  readonly wire: {
    readonly extraV1?: z.ZodObject;
    readonly extraV2: z.ZodObject;
    readonly payload: z.ZodObject;
  };

  /**
   * Recognises a payload by its shape. Lenient about spelling, so that a payment which is known already is found.
   * Undefined if the payload is another scheme's, or names no payer or nonce.
   */
  parse(payload: unknown): ParsedPayload | undefined;

  /** The signed fields, unchecked against any offer. Undefined if one is malformed. */
  readTerms(payload: ParsedPayload): SignedTerms | undefined;

  /** Checks a payload strictly: spelling, payee, value and time window. The signature is not checked. */
  check(payload: ParsedPayload, offer: OfferTerms, window: PaymentWindow): SignedTerms | InvalidPayment;

  /** What the payer signs, 32 bytes: an ordinary account with its key, a contract account is asked about it. */
  digest(payment: SchemePayment): Uint8Array;

  /** `extra` of a version 1 offer; undefined if version 1 clients cannot pay this way. */
  offerExtraV1(offer: Omit<OfferTerms, 'amount'>): Readonly<Record<string, string>> | undefined;

  /** `extra` of a version 2 offer. The flow adds the quote's digest. */
  offerExtraV2(offer: OfferTerms): Readonly<Record<string, string>>;

  /** The payload as the facilitator gets it, rebuilt from checked fields. */
  facilitatorPayload(payment: SchemePayment): Readonly<Record<string, unknown>>;

  /** Whether a facilitator gives this reason only before it broadcasts anything. */
  failsBeforeBroadcast(reason: string): boolean;

  /** What a payer's nonces are unique within, on one network: the asset, or the empty string if it is all assets. */
  nonceScope(asset: string): string;
}

import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { areEqualSecrets } from '../../base/values/equal-secrets.ts';
import type { ReceiptRequest } from '../rules/payer-signatures.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Hex } from '../../base/values/primitives.ts';
import { mapSecrets, type RotatingSecret } from '../../base/values/rotating-secret.ts';
import { logSecondSecret } from '../../base/runtime/second-secret.ts';

/** The keys of receipt tokens; a request takes those in force once. */
export type ReceiptKeys = RotatingSecret<KeyObject>;

/** @param stored the database's key, for a configuration that names none */
export function receiptKeysOf(configured: RotatingSecret | undefined, stored: Buffer): ReceiptKeys {
  if (!configured) return [createSecretKey(stored)];
  return mapSecrets(configured, (key) => createSecretKey(key, 'utf8'));
}

/** Proves that its bearer paid: a MAC over the digest, so that nothing is stored and nothing can be guessed. */
export function receiptToken([key]: ReceiptKeys, digest: Hex): string {
  return createHmac('sha256', key).update(digest).digest('base64url');
}

/** Whether one of the keys made this token. */
export function isReceiptToken(keys: ReceiptKeys, digest: Hex, token: string, log: OperatorLog): boolean {
  return isMadeByOne(keys, (key) => receiptToken([key], digest), token, log);
}

/**
 * The secret of a quote's offer, which its payment echoes. The label keeps it apart from the receipt token, which is made of the
 * digest alone.
 */
export function offerSecret([key]: ReceiptKeys, digest: Hex): string {
  return createHmac('sha256', key).update(`offer-secret:${digest}`).digest('base64url');
}

export function isOfferSecret(keys: ReceiptKeys, digest: Hex, given: string, log: OperatorLog): boolean {
  return isMadeByOne(keys, (key) => offerSecret([key], digest), given, log);
}

/** The secrets that sign the callbacks of a quote's calls: its client gets the first. */
export function callbackSecrets(keys: ReceiptKeys, digest: Hex): RotatingSecret {
  return mapSecrets(keys, (key) =>
    createHmac('sha256', key).update(`callback-secret:${digest}`).digest('base64url'),
  );
}

/** The proof in a quote's token that a gateway of this ledger made it: a client that knows only the terms cannot make the token. */
export function quoteTokenProof([key]: ReceiptKeys, digest: Hex): string {
  return createHmac('sha256', key).update(`quote-token:${digest}`).digest('base64url');
}

export function isQuoteTokenProof(keys: ReceiptKeys, digest: Hex, given: string, log: OperatorLog): boolean {
  return isMadeByOne(keys, (key) => quoteTokenProof([key], digest), given, log);
}

/** A gateway's challenge for a receipt request: a MAC over all of it, so that it need not be remembered. */
export function receiptChallenge([key]: ReceiptKeys, request: Omit<ReceiptRequest, 'challenge'>): Hex {
  const { network, asset, payer, nonce, quoteDigest = '', gateway, expiresAt } = request;
  const text = JSON.stringify([network, asset, payer, nonce, quoteDigest, gateway, expiresAt]);
  return `0x${createHmac('sha256', key).update(`receipt-challenge:${text}`).digest('hex')}`;
}

export function isReceiptChallenge(keys: ReceiptKeys, request: ReceiptRequest, log: OperatorLog): boolean {
  return isMadeByOne(keys, (key) => receiptChallenge([key], request), request.challenge, log);
}

/** Compares in constant time. Logs the use of a key that is being replaced. */
function isMadeByOne(
  keys: ReceiptKeys,
  make: (key: KeyObject) => string,
  given: string,
  log: OperatorLog,
): boolean {
  const index = keys.findIndex((key) => areEqualSecrets(given, make(key)));
  if (index > 0) logSecondSecret(log, 'receipt_key');
  return index >= 0;
}

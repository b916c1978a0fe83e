import { createHmac } from 'node:crypto';
import { areEqualSecrets } from './equal-secrets.ts';
import type { RotatingSecret } from './rotating-secret.ts';
import { isTopUpUnits } from './top-up.ts';

/** The content type of a top-up's body that is an order. */
export const orderContentType = 'text/plain';

/**
 * To whose account a top-up's credit goes, if it is not that of the payer's wallet. The gateway makes it for a session; it is the
 * body of the top-up, and its SHA-256 the nonce of the transfer: so the payer's signature names the account, no other holder of the
 * signed payment can have the credit, and an order is paid once.
 */
export interface TopUpOrder {
  readonly accountId: number;
  /** How many times the offered top-up it buys: see {@link isTopUpUnits}. */
  readonly units: number;
  /** Its payment must be started before, in Unix seconds. */
  readonly expiresAt: number;
}

const prefix = 'tollbook-top-up:';
/** Version 1: account, expiry, salt, and a MAC of the bytes before it; it buys one unit. Version 2 has the units after the account. */
export const topUpOrderForm =
  /^tollbook-top-up:(?:1:([1-9]\d{0,14})|2:([1-9]\d{0,14}):([2-9]|[1-9]\d|100)):([1-9]\d{0,11}):[A-Za-z0-9_-]{22}:[A-Za-z0-9_-]{43}$/;

/** @param salt 22 random characters of base64url */
export function writeTopUpOrder(
  [secret]: RotatingSecret,
  { accountId, units, expiresAt }: TopUpOrder,
  salt: string,
): string {
  if (!isTopUpUnits(units)) throw new RangeError('an order is of 1 to 100 units');
  const what = units === 1 ? `1:${accountId}` : `2:${accountId}:${units}`;
  const content = `${prefix}${what}:${expiresAt}:${salt}`;
  return `${content}:${proofOf(secret, content)}`;
}

/** What an order says; undefined if the text is not one. Does not check who made it. */
export function readTopUpOrder(text: string): TopUpOrder | undefined {
  const [, ofOne, ofMore, units = 1, expiresAt] = topUpOrderForm.exec(text) ?? [];
  const accountId = ofOne ?? ofMore;
  return accountId === undefined
    ? undefined
    : { accountId: Number(accountId), units: Number(units), expiresAt: Number(expiresAt) };
}

/** Whether a body is meant as an order, well formed or not. */
export function isMeantAsOrder(body: Buffer): boolean {
  return body.subarray(0, prefix.length).equals(Buffer.from(prefix));
}

/** What keeps an order from being paid now, in words; undefined if nothing does. */
export function orderFault(
  secrets: RotatingSecret | undefined,
  text: string,
  nowSecs: number,
): string | undefined {
  const order = readTopUpOrder(text);
  const end = text.lastIndexOf(':');
  const isOurs = secrets?.some((secret) =>
    areEqualSecrets(text.slice(end + 1), proofOf(secret, text.slice(0, end))),
  );
  if (!order || isOurs !== true) return 'this gateway has not made this order';
  return order.expiresAt > nowSecs ? undefined : 'this order is too old: load the page again';
}

function proofOf(secret: string, content: string): string {
  return createHmac('sha256', secret).update(`top_up_order:${content}`).digest('base64url');
}

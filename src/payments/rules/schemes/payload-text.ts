import { z } from 'zod';
import type { InvalidPayment } from './scheme.ts';

/** How the payloads of all schemes spell what was signed. */
export const payloadText = z.string().max(10_000);

export const decimal = /^(?:0|[1-9]\d{0,77})$/;

/** Of an API's description. */
export const decimalText = z.string().describe('A decimal string.');

/** As contracts take it: a longer number has no digest that could be signed. */
export function isUint256(number: string): boolean {
  return decimal.test(number) && BigInt(number) < 2n ** 256n;
}

export const signatureHex = /^0x(?:[0-9a-fA-F]{2}){65,4096}$/;

export function hasOtherKeys(value: object, keys: ReadonlySet<string>): boolean {
  return Object.keys(value).some((key) => !keys.has(key));
}

export function invalid(reason: string): InvalidPayment {
  return { invalid: reason };
}

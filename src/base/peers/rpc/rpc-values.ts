import { z } from 'zod';
import { isHex32, parseAddress, type Address, type Hex } from '../../values/primitives.ts';

/** 32 bytes in hexadecimal, lower-cased. */
export const bytes32 = z
  .string()
  .toLowerCase()
  .pipe(z.custom<Hex>((text) => typeof text === 'string' && isHex32(text)));

/** A whole number below 2^64, not negative. */
export const quantity = z
  .string()
  .regex(/^0x[0-9a-f]{1,16}$/i)
  .transform(BigInt);

/** A count that a number holds exactly. */
export const safeQuantity = quantity.transform(Number).refine((number) => Number.isSafeInteger(number));

/** Lower-cased. */
export const address = z
  .string()
  .transform((text) => parseAddress(text))
  .pipe(z.custom<Address>((value) => value !== undefined));

/** The hash that some nodes send for a block that is not sealed yet. */
export const noBlockHash: Hex = `0x${'0'.repeat(64)}`;

/** An integer in JSON-RPC's encoding. */
export function toQuantity(of: bigint): Hex {
  return `0x${of.toString(16)}`;
}

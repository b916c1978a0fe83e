import { isAddress } from 'viem/utils';
import { z } from 'zod';
import { maxJobIndex, maxServiceId } from '../values/job.ts';
import type { JobPrice } from '../values/amount.ts';
import { type Address, type Caip2, chainIdOf, parseAddress } from '../values/primitives.ts';
import { runnerName } from '../values/runner-name.ts';
import type { Rate } from '../values/token.ts';

/** Why a text is invalid; the message continues a sentence that begins with the key. */
export class Wrong {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

/** A TOML string that `read` turns into a value or a mistake; `expected` is the message for other types. */
export function text<T>(read: (text: string) => T | Wrong, expected = 'must be a string') {
  return z.string(expected).transform((raw, context): T => {
    const value = read(raw);
    if (!(value instanceof Wrong)) return value;
    context.addIssue(value.message);
    return z.NEVER;
  });
}

/** A TOML string that matches; `expected` is the message otherwise. */
export function matching(pattern: RegExp, expected: string) {
  return z
    .string('must be a string')
    .regex(pattern, expected)
    .meta({ type: typeOf(expected) });
}

/** A decimal string or an integer, such as `example`; floats would already have lost digits. */
export function decimal<T>(example: string, read: (text: string) => T | Wrong) {
  const expected = `must be a decimal string such as "${example}": a float is not exact`;
  return z
    .preprocess((raw) => (typeof raw === 'bigint' ? raw.toString() : raw), text(read, expected))
    .meta({ type: `decimal, as "${example}"` });
}

/** A TOML integer within bounds, as a number. Both bounds are allowed; a float is refused even when it is whole. */
export function wholeNumber(min: number, max: number) {
  const expected = `must be a whole number from ${min} to ${max}`;
  return z
    .bigint(expected)
    .min(BigInt(min), expected)
    .max(BigInt(max), expected)
    .transform(Number)
    .meta({ type: `${min.toLocaleString('en')} to ${max.toLocaleString('en')}` });
}

/** What a message of a wrong value says, as a type: without what comes before and after it. */
function typeOf(expected: string): string {
  return expected.replace(/^must (?:be|have)(?: the)? /, '').replace(/^(?:a|an) /, '');
}

/** One of several fixed strings. */
export function oneOf<const W extends readonly [string, ...string[]]>(words: W) {
  const expected = words.map((word) => `"${word}"`).join(' or ');
  return z.enum(words, `must be ${expected}`).meta({ type: expected });
}

export const flag = z.boolean('must be true or false').meta({ type: 'true or false' });
export const serviceId = wholeNumber(0, maxServiceId);
export const jobIndex = wholeNumber(0, maxJobIndex);
export const markupBps = wholeNumber(0, 1_000_000);
/** The name of a runner or an upstream. */
export const plainName = matching(runnerName, 'must be 1 to 64 of A-Z, a-z, 0-9, ".", "_" and "-"');
export const filePath = matching(/^[^\0]+$/, 'must be the path of a file');
/** One line for people and agents: neither control characters nor such as end a line or turn its direction. */
export function oneLine(maxChars: number) {
  return z
    .string('must be a string')
    .regex(
      /^(?!\s)[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]+(?<!\s)$/u,
      'must be one line, without blanks at its ends and without control characters',
    )
    .max(maxChars, `must have at most ${maxChars} characters`);
}

/** An address, lower-cased: not zero, and with a right checksum if it has one. */
export const address = text(readAddress).meta({ type: 'address' });
/** A CAIP-2 name of an EVM chain. */
export const network = text(readNetwork).meta({ type: 'chain, as "eip155:8453"' });
/** Tokens per native unit. */
export const rate = decimal('3200.00', readRate);
const priceForms =
  'must be dollars, such as "0.01 USD", or wei as a string of digits, such as "1000000000000000"';

/** A price in wei, above zero and below 2^128. */
const priceWei = z
  .string()
  .regex(/^(?:0|[1-9]\d{0,38})$/, priceForms)
  .transform(BigInt)
  .refine((wei) => wei > 0n && wei < 1n << 128n, 'must be above 0 and below 2^128 wei')
  .meta({ type: 'wei as digits, "1000000000000000"' });

/** A price in dollars, such as "0.01 USD", in units of 10^-18 dollars: above zero and below 2^128. */
export const priceUsd = text(readUsd).meta({ type: 'dollars, as "0.01 USD"' });
/** The price of a job: dollars, or wei. */
export const jobPrice = z
  .string(priceForms)
  .transform((raw, context): JobPrice => {
    const isUsd = raw.endsWith(' USD');
    const read = (isUsd ? priceUsd : priceWei).safeParse(raw);
    if (read.success) return { wei: read.data, inUsd: isUsd };
    for (const { message } of read.error.issues) context.addIssue(message);
    return z.NEVER;
  })
  .meta({ type: 'wei as digits, "1000000000000000", or dollars, "0.01 USD"' });

function readUsd(raw: string): bigint | Wrong {
  const [, whole = '', fraction = ''] = /^(0|[1-9]\d{0,19})(?:\.(\d{1,18}))? USD$/.exec(raw) ?? [];
  if (whole === '') return new Wrong('must be dollars with at most 18 decimals, such as "0.01 USD"');
  const units = BigInt(`${whole}${fraction.padEnd(18, '0')}`);
  return units > 0n && units < 1n << 128n
    ? units
    : new Wrong('must be above 0 and below 2^128 / 10^18 dollars');
}

function readAddress(raw: string): Address | Wrong {
  const parsed = parseAddress(raw);
  if (parsed === undefined) return new Wrong('is not an address (0x and 40 hex digits)');
  if (/^0x0+$/.test(parsed)) return new Wrong('is the zero address');
  const digits = raw.slice(2);
  const isMixedCase = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  if (isMixedCase && !isAddress(raw))
    return new Wrong('does not satisfy its checksum (EIP-55): look for a mistyped digit');
  return parsed;
}

function readNetwork(raw: string): Caip2 | Wrong {
  const chainId = chainIdOf(raw);
  return chainId === undefined
    ? new Wrong('must be eip155 and a chain id, such as "eip155:8453"')
    : `eip155:${chainId}`;
}

function readRate(raw: string): Rate | Wrong {
  const match = /^(0|[1-9]\d*)(?:\.(\d+))?$/.exec(raw);
  if (match === null) return new Wrong('must be a decimal string such as "3200.00"');
  const fraction = match[2] ?? '';
  const digits = `${match[1] ?? ''}${fraction}`;
  if (digits.length > 30) return new Wrong('must have at most 30 digits');
  const numerator = BigInt(digits);
  return numerator > 0n ? { numerator, scale: fraction.length } : new Wrong('must be above 0');
}

/** A media type without parameters: `application/json`. */
export const mediaType = matching(
  /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/i,
  'must be a media type without parameters, such as application/json',
).transform((type) => type.toLowerCase());

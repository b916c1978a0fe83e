/**
 * Credit is counted in micros: whole millionths of the configured currency.
 * A model's price is counted in nanos: whole billionths of it, for a million tokens, always above zero.
 */
export interface ModelPrice {
  readonly inputNanosPerMillion: bigint;
  readonly outputNanosPerMillion: bigint;
  /** Of the prompt's tokens that the upstream read from its cache; without it the price of input. */
  readonly cachedInputNanosPerMillion?: bigint;
  /** Of the prompt's tokens that the upstream wrote to its cache; without it the price of input. */
  readonly cacheWriteNanosPerMillion?: bigint;
}

/** A price as an event records it. */
export interface PriceData {
  readonly input_nanos: string;
  readonly output_nanos: string;
  readonly cached_input_nanos?: string | undefined;
  readonly cache_write_nanos?: string | undefined;
}

export function priceData(price: ModelPrice): PriceData {
  const { cachedInputNanosPerMillion: cached, cacheWriteNanosPerMillion: written } = price;
  return {
    input_nanos: String(price.inputNanosPerMillion),
    output_nanos: String(price.outputNanosPerMillion),
    ...(cached === undefined ? {} : { cached_input_nanos: String(cached) }),
    ...(written === undefined ? {} : { cache_write_nanos: String(written) }),
  };
}

export function priceOfData(data: PriceData): ModelPrice {
  const { cached_input_nanos: cached, cache_write_nanos: written } = data;
  return {
    inputNanosPerMillion: BigInt(data.input_nanos),
    outputNanosPerMillion: BigInt(data.output_nanos),
    ...(cached === undefined ? {} : { cachedInputNanosPerMillion: BigInt(cached) }),
    ...(written === undefined ? {} : { cacheWriteNanosPerMillion: BigInt(written) }),
  };
}

/** The prices of one million tokens each, those of the cache filled in. */
export function pricesOf(price: ModelPrice): {
  readonly input: bigint;
  readonly output: bigint;
  readonly cached: bigint;
  readonly cacheWrite: bigint;
} {
  const { inputNanosPerMillion: input, outputNanosPerMillion: output } = price;
  const { cachedInputNanosPerMillion: cached = input, cacheWriteNanosPerMillion: cacheWrite = input } = price;
  if ([input, output, cached, cacheWrite].some((nanos) => nanos <= 0n))
    throw new RangeError('a price is above zero');
  return { input, output, cached, cacheWrite };
}

/** What this many tokens cost at a price for a million, not rounded: a decimal text. */
export function exactCostText(tokens: number, nanosPerMillion: bigint): string {
  return decimalText(count(tokens) * nanosPerMillion, priceDecimals + creditDecimals);
}

/** The most that an event can hold: an upstream may report any number of tokens. */
export const mostMicros = 10n ** 16n - 1n;

const nanosPerMillionInMicrosPerToken = 10n ** 9n;
const priceDecimals = 9;
const creditDecimals = 6;

/**
 * The most that a completion can cost: the prompt once, at its highest price, since no request tells the content of a cache, and
 * every choice at its full length. Rounded up.
 */
export function upperBoundMicros(limits: {
  readonly promptTokensBound: number;
  readonly maxTokens: number;
  readonly n: number;
  readonly price: ModelPrice;
}): bigint {
  const { cached, cacheWrite, input, output } = pricesOf(limits.price);
  const highest = [cached, cacheWrite].reduce((one, other) => (one > other ? one : other), input);
  return micros(
    count(limits.promptTokensBound) * highest + count(limits.maxTokens) * count(limits.n) * output,
  );
}

/** The cost of a completion, rounded up to a whole micro. Zero only if no token was used. */
export function costMicros(used: {
  /** All tokens of the prompt, with those of the cache. */
  readonly promptTokens: number;
  /** Read from the cache, and written to it: together at most those of the prompt. */
  readonly cachedTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly completionTokens: number;
  readonly price: ModelPrice;
}): bigint {
  const { cachedTokens = 0, cacheWriteTokens = 0 } = used;
  const { cached, cacheWrite, input, output } = pricesOf(used.price);
  return micros(
    count(used.promptTokens - cachedTokens - cacheWriteTokens) * input +
      count(cachedTokens) * cached +
      count(cacheWriteTokens) * cacheWrite +
      count(used.completionTokens) * output,
  );
}

/**
 * Nanos for a million tokens from a decimal text such as `2.50`: up to six digits, and up to nine after the point.
 * Undefined for anything else, and for zero.
 */
export function parsePrice(text: string): bigint | undefined {
  const match = /^(0|[1-9]\d{0,5})(?:\.(\d{1,9}))?$/.exec(text);
  const nanos = match ? BigInt(`${match[1] ?? ''}${(match[2] ?? '').padEnd(priceDecimals, '0')}`) : 0n;
  return nanos > 0n ? nanos : undefined;
}

/** The inverse of {@link parsePrice}, in its shortest form: `2.5`. */
export function priceText(nanosPerMillion: bigint): string {
  return decimalText(nanosPerMillion, priceDecimals);
}

/** The form of an account's name: it is part of paths and, for ever, of the ledger, so that it cannot be an e-mail address. */
export const accountNamePattern = /^[A-Za-z0-9._:+-]{1,128}$/;

/** The form of the request id of a grant or an expiry, by which it is done once. */
export const requestIdPattern = /^[A-Za-z0-9_-]{16,128}$/;

/**
 * Micros from a decimal text of the currency such as `5.00`: up to nine digits, and up to six after the point.
 * Undefined for anything else.
 */
export function parseCredit(text: string): bigint | undefined {
  const match = /^(0|[1-9]\d{0,8})(?:\.(\d{1,6}))?$/.exec(text);
  return match ? BigInt(`${match[1] ?? ''}${(match[2] ?? '').padEnd(creditDecimals, '0')}`) : undefined;
}

/** Micros as a decimal text of the currency, in its shortest form: `0.25`. */
export function creditText(amountMicros: bigint): string {
  return decimalText(amountMicros, creditDecimals);
}

/** @param nanos tokens times their price for a million, summed */
function micros(nanos: bigint): bigint {
  return (nanos + nanosPerMillionInMicrosPerToken - 1n) / nanosPerMillionInMicrosPerToken;
}

function count(tokens: number): bigint {
  if (!Number.isSafeInteger(tokens) || tokens < 0)
    throw new RangeError('tokens are counted in whole numbers');
  return BigInt(tokens);
}

function decimalText(value: bigint, decimals: number): string {
  if (value < 0n) throw new RangeError('amounts are never negative');
  const digits = String(value).padStart(decimals + 1, '0');
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return digits.slice(0, -decimals) + (fraction === '' ? '' : `.${fraction}`);
}

import type { JobPrice } from './amount.ts';

/** In which a completion of this gateway, or the answer of a runner, says what it costs. */
export const answerPriceHeader = 'x-price';

/** The longest price that is read, in characters. */
export const maxPriceChars = 80;

const priceForm = /^(?<whole>0|[1-9]\d{0,38})(?:(?:\.(?<fraction>\d{1,18}))?(?<usd> USD))?$/;

/** A price as an answer says it: dollars, as `0.013 USD`, or wei as digits; zero is one. Undefined for any other text. */
export function readAnswerPrice(text: string): JobPrice | undefined {
  const { whole, fraction = '', usd } = priceForm.exec(text)?.groups ?? {};
  if (whole === undefined) return undefined;
  return usd === undefined
    ? { wei: BigInt(whole), inUsd: false }
    : { wei: BigInt(`${whole}${fraction.padEnd(18, '0')}`), inUsd: true };
}

/** A price as a program wrote it, stored beside its result; what cannot be read is kept as no price. */
export function writeResultHead(price: string): string {
  return JSON.stringify({ price: /^[\x20-\x7e]*$/.test(price) ? price.slice(0, maxPriceChars + 1) : '' });
}

/** What was written before, and is the same by its hash. */
export function readResultHead(head: string): string {
  return (JSON.parse(head) as { readonly price: string }).price;
}

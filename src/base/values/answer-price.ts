/** In which a completion of this gateway, or the answer of a runner, says what it costs. */
export const answerPriceHeader = 'x-price';

/** The longest price that is read, in characters. */
export const maxPriceChars = 80;

/** A price as a program wrote it, stored beside its result; what cannot be read is kept as no price. */
export function writeResultHead(price: string): string {
  return JSON.stringify({ price: /^[\x20-\x7e]*$/.test(price) ? price.slice(0, maxPriceChars + 1) : '' });
}

/** What was written before, and is the same by its hash. */
export function readResultHead(head: string): string {
  return (JSON.parse(head) as { readonly price: string }).price;
}

import type { SettlementOption } from '../../payments/rules/quote.ts';

/**
 * What `accepts` may take of a PAYMENT-REQUIRED of 6 KiB, in bytes of JSON: base64 adds a third, and the rest of the offer, with the
 * longest reason, takes under 1,100.
 */
const maxAcceptsBytes = 3_500;

const fitted = new WeakMap<readonly SettlementOption[], readonly SettlementOption[]>();

/**
 * The first options whose offers fit into the header together; clients and servers refuse longer headers. The last ones are left
 * out, in the order of the configuration, and one is always offered. The same list object for the same list.
 * @param offersOf the offers of a quote of these options, as JSON
 */
export function fitOptions(
  options: readonly SettlementOption[],
  offersOf: (options: readonly SettlementOption[]) => string,
): readonly SettlementOption[] {
  let list = fitted.get(options);
  if (!list) {
    list = options;
    while (list.length > 1 && Buffer.byteLength(offersOf(list)) > maxAcceptsBytes) list = list.slice(0, -1);
    fitted.set(options, list);
  }
  return list;
}

import { optionsForV1 } from '../domain/payments/x402-v1.ts';
import { canonicalJson } from '../domain/values/canonical-json.ts';
import { sha256 } from '../domain/payments/payment.ts';
import type { PriceList } from '../store/price-windows.ts';
import { type Catalog, isSold } from './catalog.ts';
import { tokenName } from '../domain/values/token.ts';

/** How often a gateway says that it still offers its price list: a crash shortens no quote by more than this. */
export const extendMs = 5_000;

/**
 * What a configuration offers to version 1 clients, whose payments name no quote. A token without a current rate stands there without
 * an amount: its earlier prices can be paid until they end.
 * @param missing such tokens, as `network/asset`
 */
export function priceListOf(catalog: Catalog, quoteTtlSecs: number, missing: ReadonlySet<string>): PriceList {
  const prices = [...catalog.values()].filter(isSold).flatMap(({ serviceId, jobIndex, priceWei, options }) =>
    optionsForV1(options).map(({ network, transferMethod, asset, payTo, amount, creditMicros }) => ({
      service_id: serviceId,
      job_index: jobIndex,
      network,
      transfer_method: transferMethod,
      asset,
      pay_to: payTo,
      amount: missing.has(tokenName({ network, asset })) ? null : String(amount),
      price_wei: String(priceWei),
      credit_micros: creditMicros === undefined ? null : String(creditMicros),
    })),
  );
  // until the list is extended again, and once more as long for an extension that comes late
  const validSecs = quoteTtlSecs + (2 * extendMs) / 1_000;
  const id = Buffer.from(sha256(canonicalJson([validSecs, prices])).slice(2), 'hex');
  return { id, validSecs, prices };
}

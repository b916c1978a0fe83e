import { payableInV1 } from '../../payments/rules/x402-v1.ts';
import { canonicalJson } from '../../base/values/canonical-json.ts';
import { type PaymentToken } from '../../payments/rules/payment.ts';
import { sha256 } from '../../base/values/sha256.ts';
import type { PriceList } from '../../payments/store/price-windows.ts';
import type { Catalog, Job } from './catalog.ts';
import { type AcceptedToken, tokenName } from '../../base/values/token.ts';

/** How often a gateway says that it still offers its price list: a crash shortens no quote by more than this. */
export const extendMs = 5_000;

/**
 * What version 1 clients can pay, whose payments name no quote: of each job its price in every token, also in those that they are not
 * offered at the moment, since what they are offered changes with rates. A token without a current rate stands there without an amount:
 * its earlier prices can be paid until they end.
 * @param missing such tokens, as `network/asset`
 */
export function priceListOf(
  catalog: Catalog,
  tokens: readonly AcceptedToken[],
  quoteTtlSecs: number,
  missing: ReadonlySet<string>,
): PriceList {
  const unrated = payableInV1(tokens).filter((token) => missing.has(tokenName(token)));
  const prices = [...catalog.values()]
    .filter(({ isSold, priced }) => isSold && !priced)
    .flatMap((job) => {
      const rated = payableInV1(job.options).filter((option) => !missing.has(tokenName(option)));
      return [
        ...rated.map((option) => ({
          ...termsOf(job, option),
          amount: String(option.amount),
          credit_micros: option.creditMicros === undefined ? null : String(option.creditMicros),
        })),
        ...unrated.map((token) => ({ ...termsOf(job, token), amount: null, credit_micros: null })),
      ];
    });
  // until the list is extended again, and once more as long for an extension that comes late
  const validSecs = quoteTtlSecs + (2 * extendMs) / 1_000;
  const id = Buffer.from(sha256(canonicalJson([validSecs, prices])).slice(2), 'hex');
  return { id, validSecs, prices };
}

function termsOf(
  { serviceId, jobIndex, priceWei }: Job,
  { network, transferMethod, asset, payTo }: PaymentToken,
) {
  return {
    service_id: serviceId,
    job_index: jobIndex,
    network,
    transfer_method: transferMethod,
    asset,
    pay_to: payTo,
    price_wei: String(priceWei),
  };
}

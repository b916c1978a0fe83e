import type { JobId } from '../domain/payments/job.ts';
import { fullOptions, optionFromJson, type SettlementOption } from '../domain/payments/quote.ts';
import type { RecentOffer } from '../store/streams.ts';
import type { Catalog } from './catalog.ts';

interface EarlierPrice {
  readonly priceWei: bigint;
  /** What it bought, where the job sold credit. */
  readonly creditMicros: bigint | undefined;
  /** Unix seconds: when its last quote expires, and when that was issued. */
  readonly untilSecs: number;
  readonly issuedSecs: number;
}

/**
 * Prices that are no longer in force, until the last quote with them has expired: a payment that names no quote, of version 1,
 * may still pay one. In memory, since any stranger can have it looked up. By job and terms.
 */
export type EarlierPrices = ReadonlyMap<string, EarlierPrice>;

/** Those that the ledger's quotes show. A quote whose price is in force does no harm here. */
export function earlierPricesOf(offers: readonly RecentOffer[]): EarlierPrices {
  const prices = new Map<string, EarlierPrice>();
  for (const { priceWei, untilSecs, issuedSecs, ...job } of offers) {
    for (const option of fullOptions(job).map(optionFromJson))
      add(prices, termsKey(job, option), {
        priceWei,
        creditMicros: option.creditMicros,
        untilSecs,
        issuedSecs,
      });
  }
  return prices;
}

/** With the prices of a catalog that is replaced now, and without those whose quotes have expired. */
export function withReplaced(
  prices: EarlierPrices,
  replaced: Catalog,
  nowSecs: number,
  ttlSecs: number,
): EarlierPrices {
  const next = new Map([...prices].filter(([, { untilSecs }]) => untilSecs > nowSecs));
  for (const job of replaced.values()) {
    const price = { priceWei: job.priceWei, untilSecs: nowSecs + ttlSecs, issuedSecs: nowSecs };
    for (const option of job.options)
      add(next, termsKey(job, option), { ...price, creditMicros: option.creditMicros });
  }
  return next;
}

/** The price of a job whose quotes with these terms have neither all expired nor all been revoked. */
export function findEarlierPrice(
  prices: EarlierPrices,
  job: JobId,
  option: SettlementOption,
  nowSecs: number,
  revokedBefore: number,
): EarlierPrice | undefined {
  const price = prices.get(termsKey(job, option));
  return price && price.untilSecs > nowSecs && price.issuedSecs >= revokedBefore ? price : undefined;
}

function add(prices: Map<string, EarlierPrice>, key: string, price: EarlierPrice): void {
  if ((prices.get(key)?.untilSecs ?? 0) < price.untilSecs) prices.set(key, price);
}

function termsKey({ serviceId, jobIndex }: JobId, option: SettlementOption): string {
  const { network, transferMethod, asset, payTo, amount } = option;
  return [serviceId, jobIndex, network, transferMethod, asset, payTo, amount].join(' ');
}

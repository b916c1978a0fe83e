import type { Config, JobsConfig } from '../base/config/config.ts';
import { type Catalog, createCatalog } from '../jobs/use-cases/catalog.ts';
import type { JobsContext } from '../jobs/use-cases/context.ts';
import { priceListOf } from '../jobs/use-cases/price-list.ts';
import {
  createRates,
  haveSameRates,
  type Rates,
  type RateView,
  viewRates,
  withoutRate,
} from '../jobs/use-cases/rates.ts';
import { offerPrices } from '../payments/store/price-windows.ts';
import { readRateRounds } from '../payments/store/rate-rounds.ts';
import type { FeatureParts } from './feature.ts';

type Prices = Pick<JobsContext, 'catalog' | 'priceList'>;

/** The rates of the jobs and the prices that follow from them. */
export interface JobRates {
  readonly rates: Rates;
  /** The prices of a configuration at the rates that are known. `putInForce` goes with them. */
  pricesOf(config: Config, settings: JobsConfig): Prices & { readonly putInForce: () => void };
  /**
   * Reads the rounds. Where a rate changed, has ended or is back, the new prices are recorded for version 1 clients first; then `swap`
   * puts them in force together with the rates, unless the context was replaced meanwhile.
   */
  follow(current: () => JobsContext, swap: (prices: Prices) => void): Promise<void>;
}

/** Reads the rounds that other gateways have recorded, so that a token with a current rate is offered from the start. */
export async function openJobRates(
  { pool }: Pick<FeatureParts['ledger'], 'pool'>,
  settings: JobsConfig,
): Promise<JobRates> {
  let reading = await readRateRounds(pool);
  const nowSecs = (): number => reading.nowSecs();
  const rates = createRates(viewRates(settings.acceptedTokens, reading.rounds), nowSecs);
  /** How many price lists `follow` has recorded, and whether the one in force must be recorded again. */
  let [lists, isOverwritten] = [0, false];
  /** Of the price list in force. */
  let listed = withoutRate(rates.view(), nowSecs()).names;

  const pricesAt = (config: Config, own: JobsConfig, view: RateView, known?: Catalog) => {
    const catalog = known ?? createCatalog(own, config, view.rates);
    const { names } = withoutRate(view, nowSecs());
    const listsBefore = lists;
    const putInForce = (): void => {
      // a list that was recorded meanwhile has withdrawn the prices that only this one has
      isOverwritten = lists !== listsBefore;
      rates.putInForce(view);
      listed = names;
    };
    const priceList = priceListOf(catalog, own.acceptedTokens, own.quoteTtlSecs, names);
    return { catalog, priceList, putInForce };
  };

  return {
    rates,
    pricesOf: (config, next) => pricesAt(config, next, viewRates(next.acceptedTokens, reading.rounds)),
    async follow(current, swap) {
      reading = await readRateRounds(pool);
      const before = current();
      const view = viewRates(before.settings.acceptedTokens, reading.rounds);
      const isSame = haveSameRates(view, rates.view());
      const { names } = withoutRate(view, nowSecs());
      const isListed = names.symmetricDifference(listed).size === 0 && !isOverwritten;
      if (isSame && isListed) return rates.putInForce(view);
      const { config, settings: own, catalog } = before;
      lists += 1;
      const { putInForce, ...prices } = pricesAt(config, own, view, isSame ? catalog : undefined);
      await offerPrices(pool, prices.priceList);
      if (current() !== before) return;
      putInForce();
      swap(prices);
    },
  };
}

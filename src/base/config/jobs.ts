import type { RotatingSecret } from '../values/rotating-secret.ts';
import { type JobPrice, priceIn } from '../values/amount.ts';
import { type InvocationMode, jobKey } from '../values/job.ts';
import type { Caip2 } from '../values/primitives.ts';
import type { AcceptedToken } from '../values/token.ts';
import type { Constants } from './constants.ts';
import { type FacilitatorConfig, readFacilitators } from './facilitator.ts';
import { frozenMap } from './freeze.ts';
import { type OfferReceiptConfig, readOfferReceipt } from './offer-receipt.ts';
import { chooseNetworks, type NetworkConfig } from './networks.ts';
import { type JobPolicy, readPolicies } from './policies.ts';
import { readPrices } from './prices.ts';
import type { Reading } from './reading.ts';
import type { Report } from './mistakes.ts';
import { jobsShape, type RootTable } from './root.ts';
import { ownSecretChars, readRotatingSecret } from './secrets.ts';
import { placeOfRoute, type RoutesConfig } from './routes.ts';
import { type ConfigOf, pick } from './table.ts';
import { readTokens } from './tokens.ts';

type JobsKeys = Omit<ConfigOf<typeof jobsShape>, 'facilitatorUrl'> & Constants['jobs'];

export interface JobsConfig extends JobsKeys {
  /** At least one, in the order in which they are asked. */
  readonly facilitators: readonly FacilitatorConfig[];
  /** Make the receipt tokens; undefined if the database's own key does. */
  readonly receiptKeys: RotatingSecret | undefined;
  /** Authenticate quotes; undefined if each quote is recorded before its answer. */
  readonly quoteKeys: RotatingSecret | undefined;
  /** Undefined if neither offers nor receipts are signed. */
  readonly offerReceipt: OfferReceiptConfig | undefined;
  /** At least one; never two of one (network, asset). */
  readonly acceptedTokens: readonly AcceptedToken[];
  /** By `jobKey()`. A job without one follows `defaultInvocationMode`. */
  readonly jobPolicies: ReadonlyMap<string, JobPolicy>;
  /** By `jobKey()`. A job without one does not exist. */
  readonly jobPrices: ReadonlyMap<string, JobPrice>;
  /** Paths of HTTP APIs that are sold; undefined where none is. */
  readonly routes: RoutesConfig | undefined;
  /** The accepted tokens' networks that have an RPC. */
  readonly networks: ReadonlyMap<Caip2, NetworkConfig>;
}

/** The keys and tables of paid jobs as far as they could be read, for checks of other tables. */
export interface JobsTables {
  readonly isOn: boolean;
  readonly tokens: readonly AcceptedToken[];
  readonly policies: readonly JobPolicy[];
  readonly prices: ReadonlyMap<string, JobPrice>;
  readonly defaultMode: InvocationMode | undefined;
  /** Undefined if the feature is off or after a report. */
  readonly whole: JobsConfig | undefined;
}

/**
 * Reads all keys and tables of paid jobs. When the feature is off nothing is missing, but what the file has is checked all the
 * same.
 */
export async function readJobs(
  root: RootTable,
  isOn: boolean,
  reading: Reading,
  routes: RoutesConfig | undefined,
): Promise<JobsTables> {
  const { report } = reading;
  const facilitators = await readFacilitators(root, isOn, reading);
  const receiptKeys = await readRotatingSecret(root, 'receipt_key', { minChars: ownSecretChars }, reading);
  const quoteKeys = await readRotatingSecret(root, 'quote_key', { minChars: ownSecretChars }, reading);
  const offerReceipt = await readOfferReceipt(root.values.offerReceipt, reading);
  const tokens = readTokens(root, isOn, reading);
  const policies = await readPolicies(root.values.jobPolicies, reading, routes);
  const prices = await readPrices(root, reading);
  addRoutes(root, routes, prices, report);
  checkMeteredRoutes(root, routes, tokens, reading);
  checkDefaultMode(root, policies, prices, report);
  checkAmounts(tokens, prices, report);
  const tables = {
    isOn,
    tokens,
    policies,
    prices,
    defaultMode: root.values.defaultInvocationMode,
    whole: undefined,
  };
  // warnings about a file that cannot be used would hide its mistakes
  if (!isOn || reading.findings.mistakes.length > 0 || !root.whole || !facilitators) return tables;
  warnOfPrices(policies, prices, report);
  if (!receiptKeys)
    report.warning(
      ['receipt_key'],
      'is missing: receipt tokens are made with a key that is in the database, so a copy of the database opens every receipt',
    );
  if (!quoteKeys)
    report.warning(
      ['quote_key'],
      'is missing: each quote is recorded before its answer, so every 402 waits for the disk',
    );
  const whole: JobsConfig = {
    ...pick(jobsShape, root.whole),
    ...reading.constants.jobs,
    facilitators,
    receiptKeys,
    quoteKeys,
    offerReceipt,
    acceptedTokens: tokens,
    jobPolicies: frozenMap(policies.map((policy) => [jobKey(policy), policy])),
    jobPrices: frozenMap(prices),
    routes,
    networks: frozenMap(chooseNetworks(tokens, reading.networks, root.whole.confirm, report)),
  };
  return { ...tables, whole };
}

/** A route is a job: its price is one of the price map. */
function addRoutes(
  root: RootTable,
  routes: RoutesConfig | undefined,
  prices: Map<string, JobPrice>,
  report: Report,
): void {
  for (const [key, route] of routes?.all ?? []) {
    const at = placeOfRoute(root, route);
    const { price } = route;
    if (price === undefined && !prices.has(key))
      report.mistake([...at, 'price'], `is missing: write it here, such as "0.01 USD", or in [job_prices]`);
    if (price === undefined) continue;
    if (prices.has(key)) report.mistake([...at, 'price'], `job ${key} has a price in [job_prices] as well`);
    prices.set(key, { wei: price, inUsd: true });
  }
}

/** How much a facilitator has moved, only the chain shows. */
function checkMeteredRoutes(
  root: RootTable,
  routes: RoutesConfig | undefined,
  tokens: readonly AcceptedToken[],
  { networks, report }: Reading,
): void {
  const metered = [...(routes?.all.values() ?? [])].find(({ chargeHeader }) => chargeHeader !== undefined);
  const unread = tokens.find(({ network }) => !networks.has(network));
  if (metered && unread)
    report.mistake(
      [...placeOfRoute(root, metered), 'charge_header'],
      `needs an RPC of each accepted token's network: [[networks]] does not name ${unread.network}`,
    );
}

/** A restricted default names no contract to ask, so every priced job must have a policy that names one. */
function checkDefaultMode(
  root: RootTable,
  policies: readonly JobPolicy[],
  prices: ReadonlyMap<string, JobPrice>,
  report: Report,
): void {
  if (root.values.defaultInvocationMode !== 'restricted_paid') return;
  const keys = new Set(policies.map(jobKey));
  const bare = [...prices.keys()].find((key) => !keys.has(key));
  if (bare === undefined) return;
  report.mistake(
    ['default_invocation_mode'],
    `restricted_paid needs a policy for every priced job, and ${bare} has no policy`,
  );
}

/** A token contract's amounts have 256 bits: a larger amount cannot be quoted. */
function checkAmounts(
  tokens: readonly AcceptedToken[],
  prices: ReadonlyMap<string, JobPrice>,
  report: Report,
): void {
  const pricedInUsd = [...prices].find(([, { inUsd }]) => inUsd);
  if (pricedInUsd && tokens.length > 0 && !tokens.some(({ peg }) => peg === 'USD'))
    report.mistake(
      ['accepted_tokens'],
      `job ${pricedInUsd[0]} is priced in dollars, and no token has peg = "USD": clients could not pay for it`,
    );
  const pricedInWei = [...prices].find(([, { inUsd }]) => !inUsd);
  if (pricedInWei && tokens.length > 0 && !tokens.some(hasRate))
    report.mistake(
      ['rate_per_native_unit'],
      `is missing: job ${pricedInWei[0]} is priced in wei, and no token has a rate`,
    );
  for (const [index, token] of tokens.entries()) {
    const tooLarge = [...prices].find(([, price]) => {
      const { ratePerNativeUnit } = token;
      // where sources say the rate, an amount that is too large is not offered
      return ratePerNativeUnit && (priceIn(token, price, ratePerNativeUnit) ?? 0n) >= 2n ** 256n;
    });
    if (tooLarge)
      report.mistake(
        ['accepted_tokens', index],
        `the price of job ${tooLarge[0]} in ${token.symbol} is above 2^256`,
      );
  }
}

function hasRate({ ratePerNativeUnit, rateTerms }: AcceptedToken): boolean {
  return ratePerNativeUnit !== undefined || rateTerms !== undefined;
}

function warnOfPrices(
  policies: readonly JobPolicy[],
  prices: ReadonlyMap<string, JobPrice>,
  report: Report,
): void {
  if (prices.size === 0) report.warning([], 'no job has a price, so every job is unknown to clients');
  for (const [index, policy] of policies.entries()) {
    const key = jobKey(policy);
    if (policy.invocationMode === 'disabled' || prices.has(key)) continue;
    report.warning(['job_policies', index], `job ${key} has no price, so it is unknown to clients`);
  }
}

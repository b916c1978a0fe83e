import type { RotatingSecret } from '../values/rotating-secret.ts';
import { tokenAmount } from '../values/amount.ts';
import { type InvocationMode, jobKey } from '../values/job.ts';
import type { Caip2 } from '../values/primitives.ts';
import type { AcceptedToken } from '../values/token.ts';
import type { Constants } from './constants.ts';
import { type FacilitatorAccess, readFacilitator } from './facilitator.ts';
import { frozenMap } from './freeze.ts';
import { type OfferReceiptConfig, readOfferReceipt } from './offer-receipt.ts';
import { chooseNetworks, type NetworkConfig } from './networks.ts';
import { type JobPolicy, readPolicies } from './policies.ts';
import { readPrices } from './prices.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import { jobsShape, type RootTable } from './root.ts';
import { ownSecretChars, readRotatingSecret } from './secrets.ts';
import { type ConfigOf, pick } from './table.ts';
import { readTokens } from './tokens.ts';

type JobsKeys = Omit<ConfigOf<typeof jobsShape>, keyof FacilitatorAccess> & Constants['jobs'];

export interface JobsConfig extends JobsKeys, FacilitatorAccess {
  /** Make the receipt tokens; undefined where the database's own key does. */
  readonly receiptKeys: RotatingSecret | undefined;
  /** Authenticate quotes; undefined where each quote is recorded before its answer. */
  readonly quoteKeys: RotatingSecret | undefined;
  /** Undefined where neither offers nor receipts are signed. */
  readonly offerReceipt: OfferReceiptConfig | undefined;
  /** At least one; never two of one (network, asset). */
  readonly acceptedTokens: readonly AcceptedToken[];
  /** By `jobKey()`. A job without one follows `defaultInvocationMode`. */
  readonly jobPolicies: ReadonlyMap<string, JobPolicy>;
  /** Wei above zero, by `jobKey()`. A job without one does not exist. */
  readonly jobPrices: ReadonlyMap<string, bigint>;
  /** The accepted tokens' networks that have an RPC. */
  readonly networks: ReadonlyMap<Caip2, NetworkConfig>;
}

/** The keys and tables of paid jobs as far as they could be read, for checks of other tables. */
export interface JobsTables {
  readonly isOn: boolean;
  readonly tokens: readonly AcceptedToken[];
  readonly policies: readonly JobPolicy[];
  readonly prices: ReadonlyMap<string, bigint>;
  readonly defaultMode: InvocationMode | undefined;
  /** Undefined if the feature is off or after a report. */
  readonly whole: JobsConfig | undefined;
}

/**
 * Reads all keys and tables of paid jobs. When the feature is off nothing is missing, but what the file has is checked all the
 * same.
 */
export async function readJobs(root: RootTable, isOn: boolean, reading: Reading): Promise<JobsTables> {
  const { report } = reading;
  const facilitator = await readFacilitator(root, isOn, reading);
  const receiptKeys = await readRotatingSecret(root, 'receipt_key', { minChars: ownSecretChars }, reading);
  const quoteKeys = await readRotatingSecret(root, 'quote_key', { minChars: ownSecretChars }, reading);
  const offerReceipt = await readOfferReceipt(root.values.offerReceipt, reading);
  const tokens = readTokens(root, isOn, reading);
  const policies = await readPolicies(root.values.jobPolicies, reading);
  const prices = await readPrices(root, reading);
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
  if (!isOn || reading.findings.mistakes.length > 0 || !root.whole || !facilitator) return tables;
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
    ...facilitator,
    receiptKeys,
    quoteKeys,
    offerReceipt,
    acceptedTokens: tokens,
    jobPolicies: frozenMap(policies.map((policy) => [jobKey(policy), policy])),
    jobPrices: frozenMap(prices),
    networks: frozenMap(chooseNetworks(tokens, reading.networks, root.whole.confirm, report)),
  };
  return { ...tables, whole };
}

/** A restricted default names no contract to ask, so every priced job must have a policy that names one. */
function checkDefaultMode(
  root: RootTable,
  policies: readonly JobPolicy[],
  prices: ReadonlyMap<string, bigint>,
  report: Report,
): void {
  if (root.values.defaultInvocationMode !== 'restricted_paid') return;
  const keys = new Set(policies.map(jobKey));
  const bare = [...prices.keys()].find((key) => !keys.has(key));
  if (bare === undefined) return;
  report.mistake(
    ['default_invocation_mode'],
    `restricted_paid needs a policy for every priced job, and ${bare} has none`,
  );
}

/** A token contract's amounts have 256 bits: a larger amount cannot be quoted. */
function checkAmounts(
  tokens: readonly AcceptedToken[],
  prices: ReadonlyMap<string, bigint>,
  report: Report,
): void {
  for (const [index, token] of tokens.entries()) {
    const { ratePerNativeUnit, decimals, markupBps } = token;
    // where sources say the rate, an amount that is too large is not offered
    if (!ratePerNativeUnit) continue;
    const tooLarge = [...prices].find(
      ([, priceWei]) => tokenAmount(priceWei, ratePerNativeUnit, decimals, markupBps) >= 2n ** 256n,
    );
    if (tooLarge)
      report.mistake(
        ['accepted_tokens', index],
        `the price of job ${tooLarge[0]} in ${token.symbol} is above 2^256`,
      );
  }
}

function warnOfPrices(
  policies: readonly JobPolicy[],
  prices: ReadonlyMap<string, bigint>,
  report: Report,
): void {
  if (prices.size === 0) report.warning([], 'no job has a price, so every job is unknown to clients');
  for (const [index, policy] of policies.entries()) {
    const key = jobKey(policy);
    if (policy.invocationMode === 'disabled' || prices.has(key)) continue;
    report.warning(['job_policies', index], `job ${key} has no price, so it is unknown to clients`);
  }
}

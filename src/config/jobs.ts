import { tokenAmount } from '../domain/values/amount.ts';
import { type InvocationMode, jobKey } from '../domain/payments/job.ts';
import type { AcceptedToken } from '../domain/values/token.ts';
import type { JobPolicy, JobsConfig } from './config.ts';
import { readFacilitator } from './facilitator.ts';
import { frozenMap } from './freeze.ts';
import { chooseNetworks, readNetworks } from './networks.ts';
import { readPolicies } from './policies.ts';
import { readPrices } from './prices.ts';
import type { Reading } from './reading.ts';
import type { Report } from './report.ts';
import type { RootTable } from './root.ts';
import { readTokens } from './tokens.ts';

/** What the file offers, as far as it could be read: also where something else of it is wrong. */
export interface Offered {
  readonly isOn: boolean;
  readonly tokens: readonly AcceptedToken[];
  readonly policies: readonly JobPolicy[];
  readonly prices: ReadonlyMap<string, bigint>;
  readonly defaultMode: InvocationMode | undefined;
  /** All of it; undefined if the feature is off or after a report. */
  readonly whole: JobsConfig | undefined;
}

/**
 * Reads all that the x402 feature needs. When the feature is off nothing is missing, but what stands in the
 * file is checked all the same.
 */
export async function readJobs(root: RootTable, isOn: boolean, reading: Reading): Promise<Offered> {
  const { report } = reading;
  const facilitator = await readFacilitator(root, isOn, reading);
  const tokens = readTokens(root, isOn, report);
  const policies = await readPolicies(root.values.job_policies, reading);
  const rpcUrls = readNetworks(root.values.networks, report);
  const prices = await readPrices(root, reading);
  checkDefaultMode(root, policies, prices, report);
  checkAmounts(tokens, prices, report);
  const defaultMode = root.values.default_invocation_mode;
  const offered = { isOn, tokens, policies, prices, defaultMode, whole: undefined };
  // Advice on a file that cannot be used would only bury its mistakes.
  if (!isOn || reading.findings.mistakes.length > 0 || root.whole === undefined || facilitator === undefined)
    return offered;
  warnOfPrices(policies, prices, report);
  const whole: JobsConfig = {
    facilitator,
    tokens,
    policies: frozenMap(policies.map((policy) => [jobKey(policy), policy])),
    prices: frozenMap(prices),
    defaultInvocationMode: root.whole.default_invocation_mode,
    quoteTtlSecs: root.whole.quote_ttl_secs,
    maxSignatureTtlSecs: root.whole.max_signature_ttl_secs,
    parityCacheSecs: root.whole.parity_cache_secs,
    maxTimeoutSecs: root.whole.max_timeout_secs,
    paymentIdentifier: root.whole.payment_identifier,
    confirm: root.whole.confirm,
    confirmTimeoutMs: root.whole.confirm_timeout_ms,
    networks: frozenMap(await chooseNetworks(tokens, rpcUrls, report)),
  };
  return { ...offered, whole };
}

/** A restricted default says nothing of whom to ask, so every priced job must have a policy that does. */
function checkDefaultMode(
  root: RootTable,
  policies: readonly JobPolicy[],
  prices: ReadonlyMap<string, bigint>,
  report: Report,
): void {
  if (root.values.default_invocation_mode !== 'restricted_paid') return;
  const keys = new Set(policies.map(jobKey));
  const bare = [...prices.keys()].find((key) => !keys.has(key));
  if (bare === undefined) return;
  report.mistake(
    ['default_invocation_mode'],
    `restricted_paid needs a policy for every priced job, and ${bare} has none`,
  );
}

/** A contract's amounts have 256 bits: what does not fit can be quoted to nobody. */
function checkAmounts(
  tokens: readonly AcceptedToken[],
  prices: ReadonlyMap<string, bigint>,
  report: Report,
): void {
  for (const [index, token] of tokens.entries()) {
    const { ratePerNativeUnit, decimals, markupBps } = token;
    const tooDear = [...prices].find(
      ([, priceWei]) => tokenAmount(priceWei, ratePerNativeUnit, decimals, markupBps) >= 2n ** 256n,
    );
    if (tooDear)
      report.mistake(
        ['accepted_tokens', index],
        `the price of job ${tooDear[0]} in ${token.symbol} is beyond 2^256`,
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

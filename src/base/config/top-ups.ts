import { z } from 'zod';
import { type JobPrice, priceIn } from '../values/amount.ts';
import { type JobId, jobKey } from '../values/job.ts';
import { topUpMicros } from '../values/top-up.ts';
import type { AcceptedToken, Rate } from '../values/token.ts';
import type { Path, Report } from './mistakes.ts';
import type { RootTable } from './root.ts';
import { checkUnserved } from './runners.ts';
import { isTable, readTables, readValue, type Table } from './table.ts';
import { jobIndex, rate, serviceId } from './values.ts';
import type { JobsTables } from './jobs.ts';

export const topUpShape = {
  service_id: serviceId.describe('Its service, without a runner'),
  job_index: jobIndex.describe('Its index in the service'),
  currency_per_token: z
    .unknown()
    .meta({ type: 'table of decimals by symbol, as { USDC = "1" }' })
    .describe('Credit for one token; other tokens buy none'),
} as const;

type TopUpTable = Table<typeof topUpShape>;

/** A priced job that adds its payment to the payer's credit; no runner gets its calls. */
export interface TopUpConfig extends JobId {
  /** Units of the currency that a token is worth, by symbol. A token that is not named buys no credit. */
  readonly currencyPerToken: Readonly<Record<string, Rate>>;
}

/** Units of the currency that a token is worth; undefined if it buys no credit. */
export function currencyPerToken(
  { currencyPerToken: rates }: Pick<TopUpConfig, 'currencyPerToken'>,
  symbol: string,
): Rate | undefined {
  return Object.hasOwn(rates, symbol) ? rates[symbol] : undefined;
}

/** Reads `[[top_ups]]`. Returns the valid ones; mistakes in the others are reported. */
export function readTopUps(root: RootTable, jobs: JobsTables, report: Report): TopUpConfig[] {
  const at: Path = ['top_ups'];
  const tables = readTables(topUpShape, root.values.topUps, at, report);
  if (tables.length > 0) {
    checkFeatures(root, jobs, at, report);
    checkProof(jobs, at, report);
  }
  const seen = new Map<string, number>();
  return tables.flatMap((table, index) => {
    const rates = readRates(table, jobs, report);
    const job = jobOf(table);
    if (!job) return [];
    const earlier = seen.get(jobKey(job));
    if (earlier === undefined) seen.set(jobKey(job), index);
    else report.mistake(table.at, `repeats job ${jobKey(job)} of top_ups[${earlier}]`);
    const topUp = { ...job, currencyPerToken: rates };
    checkJob(table.at, job, jobs, report);
    checkUnserved(table.at, job.serviceId, root.values.runners, report);
    checkWorth(table.at, topUp, jobs, report);
    return [topUp];
  });
}

function jobOf({ values }: TopUpTable): JobId | undefined {
  const { serviceId: service, jobIndex: index } = values;
  return service === undefined || index === undefined ? undefined : { serviceId: service, jobIndex: index };
}

function checkFeatures(root: RootTable, { isOn }: JobsTables, at: Path, report: Report): void {
  if (!isOn) report.mistake(at, 'needs the feature x402: a top-up is a paid job');
  if (!root.names('identity'))
    report.mistake(at, 'needs [identity]: the payer signs in with the wallet to use the credit');
}

/** A facilitator's answer alone gives no credit, unless the operator trusts it for every payment. */
function checkProof({ whole: jobs }: JobsTables, at: Path, report: Report): void {
  if (!jobs || jobs.confirm === 'never') return;
  for (const network of new Set(jobs.acceptedTokens.map((token) => token.network))) {
    if (jobs.networks.has(network)) continue;
    report.mistake(at, `no RPC proves payments on ${network}: name its rpc_url, or set confirm = "never"`);
  }
}

/** By symbol, since a token is worth the same on all networks. */
function readRates(
  { at, values }: TopUpTable,
  { tokens }: JobsTables,
  report: Report,
): Readonly<Record<string, Rate>> {
  const raw = values.currencyPerToken;
  const keyAt = [...at, 'currency_per_token'];
  if (raw === undefined) {
    report.mistake(keyAt, 'is missing: it says what a token is worth, such as { USDC = "1" }');
    return {};
  }
  if (!isTable(raw)) {
    report.mistake(keyAt, 'must be a table of rates by symbol, such as { EURC = "1.08" }');
    return {};
  }
  const symbols = new Set(tokens.map(({ symbol }) => symbol));
  const rates: [string, Rate][] = [];
  for (const [symbol, text] of Object.entries(raw)) {
    const read = readValue(rate, text, [...keyAt, symbol], report);
    if (read) rates.push([symbol, read.value]);
    if (!symbols.has(symbol))
      report.mistake([...keyAt, symbol], `is not an accepted token: those are ${[...symbols].join(', ')}`);
  }
  for (const symbol of symbols)
    if (!Object.hasOwn(raw, symbol))
      report.warning(keyAt, `has no rate for ${symbol}, which buys no credit here`);
  if (symbols.size > 0 && rates.length === 0) report.mistake(keyAt, 'has no rate for any accepted token');
  return Object.fromEntries(rates);
}

function checkJob(at: Path, job: JobId, jobs: JobsTables, report: Report): void {
  const { isOn, prices, policies, defaultMode } = jobs;
  if (!isOn) return;
  const key = jobKey(job);
  if (!prices.has(key)) report.mistake(at, `job ${key} has no price`);
  const policy = policies.find((one) => jobKey(one) === key);
  const mode = policy?.invocationMode ?? defaultMode;
  if (mode === 'disabled') report.mistake(at, `job ${key} is disabled, so no client can pay for it`);
  if (mode === 'restricted_paid' && policy?.authMode === 'delegated_caller_signature')
    report.mistake(
      at,
      `job ${key} is called for other callers: a top-up must belong to its payer (payer_is_caller)`,
    );
}

/** The payment must be worth credit, and no more than an account can hold. */
function checkWorth(at: Path, topUp: TopUpConfig, { tokens, prices }: JobsTables, report: Report): void {
  const price = prices.get(jobKey(topUp));
  if (price === undefined) return;
  for (const token of tokens) {
    const micros = worthOf(topUp, token, price);
    if (micros === undefined) continue;
    if (micros === 0n) report.mistake(at, `the price in ${token.symbol} is worth no credit`);
    if (micros > BigInt(Number.MAX_SAFE_INTEGER))
      report.mistake(at, `the price in ${token.symbol} is worth more credit than an account can hold`);
  }
}

function worthOf(topUp: TopUpConfig, token: AcceptedToken, price: JobPrice): bigint | undefined {
  const { ratePerNativeUnit, decimals, symbol } = token;
  const worth = currencyPerToken(topUp, symbol);
  // where sources say the rate, a price that is worth no credit is not offered
  const atoms = priceIn(token, price, ratePerNativeUnit);
  return worth && atoms !== undefined ? topUpMicros(atoms, decimals, worth) : undefined;
}

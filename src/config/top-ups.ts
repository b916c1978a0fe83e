import { z } from 'zod';
import { tokenAmount } from '../domain/values/amount.ts';
import { type JobId, jobKey } from '../domain/payments/job.ts';
import { topUpMicros } from '../domain/credit/top-up.ts';
import type { AcceptedToken, Rate } from '../domain/values/token.ts';
import type { TopUpConfig } from './config.ts';
import type { Path } from './mistakes.ts';
import type { Report } from './report.ts';
import type { RootTable } from './root.ts';
import { isTable, readTables, readValue, type Table } from './table.ts';
import { jobIndex, rate, serviceId } from './values.ts';
import type { Offered } from './jobs.ts';

const shape = { service_id: serviceId, job_index: jobIndex, currency_per_token: z.unknown() } as const;

type TopUpTable = Table<typeof shape>;

/** A token is worth one unit of the currency. */
const par: Rate = { numerator: 1n, scale: 0 };

/** What one token is worth in the currency. */
export function currencyPerToken(topUp: Pick<TopUpConfig, 'currencyPerToken'>, symbol: string): Rate {
  const rates = topUp.currencyPerToken;
  return (Object.hasOwn(rates, symbol) ? rates[symbol] : undefined) ?? par;
}

/** Reads `[[top_ups]]`. Returns the whole ones; what is wrong with the others is reported. */
export function readTopUps(raw: unknown, root: RootTable, offered: Offered, report: Report): TopUpConfig[] {
  const at: Path = ['top_ups'];
  const tables = readTables(shape, raw, at, report);
  if (tables.length > 0) {
    checkFeatures(root, offered, at, report);
    checkProof(offered, at, report);
  }
  const seen = new Map<string, number>();
  return tables.flatMap((table, index) => {
    const rates = readRates(table, offered, report);
    const job = jobOf(table);
    if (!job) return [];
    const earlier = seen.get(jobKey(job));
    if (earlier === undefined) seen.set(jobKey(job), index);
    else report.mistake(table.at, `repeats job ${jobKey(job)} of top_ups[${earlier}]`);
    const topUp = { ...job, currencyPerToken: rates };
    checkJob(table.at, job, offered, report);
    checkRunners(table.at, job, root.values.runners, report);
    checkWorth(table.at, topUp, offered, report);
    return [topUp];
  });
}

function jobOf({ values }: TopUpTable): JobId | undefined {
  const { service_id: service, job_index: index } = values;
  return service === undefined || index === undefined ? undefined : { serviceId: service, jobIndex: index };
}

function checkFeatures(root: RootTable, { isOn }: Offered, at: Path, report: Report): void {
  if (!isOn) report.mistake(at, 'needs the feature jobs: a top-up is a paid job');
  if (!root.names('identity'))
    report.mistake(at, 'needs [identity]: credit that is bought is spent by signing in with the wallet');
}

/** A facilitator's word alone makes nobody credit, unless the operator takes that word for everything. */
function checkProof({ whole: x402 }: Offered, at: Path, report: Report): void {
  if (!x402 || x402.confirm === 'never') return;
  for (const network of new Set(x402.tokens.map((token) => token.network))) {
    if (x402.networks.has(network)) continue;
    report.mistake(at, `nothing proves payments on ${network}: name its rpc_url, or set confirm = "never"`);
  }
}

/** By symbol, since a token is worth the same on all networks. */
function readRates(
  { at, values }: TopUpTable,
  { tokens }: Offered,
  report: Report,
): Readonly<Record<string, Rate>> {
  const raw = values.currency_per_token;
  if (raw === undefined) return {};
  const here = [...at, 'currency_per_token'];
  if (!isTable(raw)) {
    report.mistake(here, 'must be a table of rates by symbol, such as { EURC = "1.08" }');
    return {};
  }
  const symbols = new Set(tokens.map(({ symbol }) => symbol));
  const rates: [string, Rate][] = [];
  for (const [symbol, text] of Object.entries(raw)) {
    const read = readValue(rate, text, [...here, symbol], report);
    if (read) rates.push([symbol, read.value]);
    if (!symbols.has(symbol))
      report.mistake([...here, symbol], `is no accepted token: those are ${[...symbols].join(', ')}`);
  }
  return Object.fromEntries(rates);
}

function checkJob(at: Path, job: JobId, offered: Offered, report: Report): void {
  const { isOn, prices, policies, defaultMode } = offered;
  if (!isOn) return;
  const key = jobKey(job);
  if (!prices.has(key)) report.mistake(at, `job ${key} has no price`);
  const policy = policies.find((one) => jobKey(one) === key);
  const mode = policy?.invocationMode ?? defaultMode;
  if (mode === 'disabled') report.mistake(at, `job ${key} is disabled, so nobody can pay for it`);
  if (mode === 'restricted_paid' && policy?.authMode === 'delegated_caller_signature')
    report.mistake(at, `job ${key} is called for others: a top-up is the payer's own (payer_is_caller)`);
}

/** A runner gets all calls of its services; read as they stand in the file, whatever else is wrong with them. */
function checkRunners(at: Path, { serviceId: service }: JobId, raw: unknown, report: Report): void {
  const runners: readonly unknown[] = Array.isArray(raw) ? raw : [];
  for (const [index, runner] of runners.entries()) {
    const services: unknown = isTable(runner) ? runner['services'] : undefined;
    if (!Array.isArray(services) || !services.includes(BigInt(service))) continue;
    report.mistake(
      [...at, 'service_id'],
      `runners[${index}] serves service ${service} and would take these calls`,
    );
  }
}

/** What is paid has to be worth something, and no more than an account can hold. */
function checkWorth(at: Path, topUp: TopUpConfig, { tokens, prices }: Offered, report: Report): void {
  const priceWei = prices.get(jobKey(topUp));
  if (priceWei === undefined) return;
  for (const token of tokens) {
    const micros = worthOf(topUp, token, priceWei);
    if (micros === 0n) report.mistake(at, `the price in ${token.symbol} is worth no credit at all`);
    if (micros > BigInt(Number.MAX_SAFE_INTEGER))
      report.mistake(at, `the price in ${token.symbol} is worth more credit than can be counted`);
  }
}

function worthOf(topUp: TopUpConfig, token: AcceptedToken, priceWei: bigint): bigint {
  const { ratePerNativeUnit, decimals, markupBps, symbol } = token;
  const atoms = tokenAmount(priceWei, ratePerNativeUnit, decimals, markupBps);
  return topUpMicros(atoms, decimals, currencyPerToken(topUp, symbol));
}

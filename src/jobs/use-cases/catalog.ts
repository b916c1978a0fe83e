import type { Config, JobInput, JobPolicy, JobsConfig, TopUpConfig } from '../../base/config/config.ts';
import { routeOf, type RouteConfig } from '../../base/config/routes.ts';
import { currencyPerToken } from '../../base/config/top-ups.ts';
import { topUpMicros } from '../../base/values/top-up.ts';
import { type JobPrice, priceIn } from '../../base/values/amount.ts';
import { type Discovery, isQueryMethod, plainDiscovery } from '../../base/values/discovery.ts';
import { checkedTooLong, compileSchema, type InputCheck } from '../../base/values/job-input.ts';
import {
  type AuthMode,
  type InvocationMode,
  type JobId,
  jobKey,
  type ServiceIdType,
} from '../../base/values/job.ts';
import { type Address, chainIdOf } from '../../base/values/primitives.ts';
import type { SettlementOption } from '../../payments/rules/quote.ts';
import type { OfferedResource } from '../../payments/rules/x402-v1.ts';
import { type AcceptedToken, type Rate, tokenName } from '../../base/values/token.ts';
import { createBoundedCache } from '../../base/values/bounded-cache.ts';
import { withinCpuMs } from '../../base/runtime/within-cpu.ts';

const beyondUint256 = 1n << 256n;
const mostMicros = BigInt(Number.MAX_SAFE_INTEGER);

/** How a job's callers are authenticated, and which contract permits them. */
export interface Restriction {
  readonly authMode: AuthMode;
  readonly rpcUrl: string;
  /** Where the operator names the contract's chain. */
  readonly chainId: number | undefined;
  readonly contract: Address;
  readonly serviceIdType: ServiceIdType;
}

/** A job on sale: its present price, also in each accepted token. */
export interface Job extends JobId {
  readonly mode: InvocationMode;
  /** Whether it can be bought. */
  readonly isSold: boolean;
  /** One line each, for people and agents. A route without a name is called by its methods and its path. */
  readonly name: string | undefined;
  readonly description: string | undefined;
  /** Also set for a disabled job, so that a dry run can test it before it is enabled. */
  readonly restriction: Restriction | undefined;
  readonly priceWei: bigint;
  /** Whether its price is in units of 10^-18 dollars, not in wei. */
  readonly inUsd: boolean;
  /** The path that is sold; undefined where runners get its calls. */
  readonly route: RouteConfig | undefined;
  /** Where a route is bought; undefined for all other jobs, which have their address from their ids. */
  readonly url: string | undefined;
  /** Whether a runner of the configuration serves it, or it needs none: it sells credit. Without one it is not sold. */
  readonly hasRunner: boolean;
  /** It is not sold while its runners have taken nothing for this long; 0: it always is. */
  readonly maxRunnerSilenceSecs: number;
  /** In the order of the configuration; none in a token whose rate was never known. */
  readonly options: readonly SettlementOption[];
  /** The job at the price of one request; undefined where every request costs the same. */
  readonly priced: ((price: JobPrice) => PricedTerms) | undefined;
  /** Whether payments for it buy credit. */
  readonly isTopUp: boolean;
  /** The content type and schema of its requests; undefined if it takes any. */
  readonly input: (JobInput & { readonly check?: InputCheck }) | undefined;
  /** JSON Schema of its results, which describes them to people; none is checked by it. */
  readonly output: Readonly<Record<string, unknown>> | undefined;
  /** How facilitators list it; undefined if they may not. */
  readonly discovery: Discovery | undefined;
}

/** What one request costs, also in each accepted token. */
export type PricedTerms = Pick<Job, 'priceWei' | 'inUsd' | 'options'>;

/** All jobs with a price, by `jobKey()`, for one configuration and the rates in force. */
export type Catalog = ReadonlyMap<string, Job>;

/** How a configuration sells a job. */
export function modeOf(config: Pick<JobsConfig, 'jobPolicies' | 'defaultInvocationMode'>, key: string) {
  return config.jobPolicies.get(key)?.invocationMode ?? config.defaultInvocationMode;
}

/** @param rates by `network/asset` */
export function createCatalog(
  config: JobsConfig,
  { topUps, runners }: Pick<Config, 'topUps' | 'runners'>,
  rates: ReadonlyMap<string, Rate>,
): Catalog {
  const served = new Set(runners.flatMap(({ services }) => services));
  const selling = new Map(topUps.map((topUp) => [jobKey(topUp), topUp]));
  const jobs = new Map<string, Job>();
  for (const [key, price] of config.jobPrices) {
    const [serviceId, jobIndex] = key.split('/').map(Number) as [number, number];
    const policy = config.jobPolicies.get(key);
    const mode = modeOf(config, key);
    const restriction = policy && restrictionOf(policy);
    const route = routeOf(config.routes, { serviceId, jobIndex });
    const termsAt = (at: JobPrice): PricedTerms => ({
      priceWei: at.wei,
      inUsd: at.inUsd,
      options: config.acceptedTokens.flatMap((token) =>
        optionsOf(
          route?.chargeHeader === undefined ? token : { ...token, transferMethod: 'upto' },
          rates.get(tokenName(token)),
          at,
          selling.get(key),
        ),
      ),
    });
    jobs.set(key, {
      serviceId,
      jobIndex,
      mode,
      isSold: mode === 'public_paid' || (mode === 'restricted_paid' && restriction !== undefined),
      name: policy?.name ?? (route && `${route.methods.join(', ')} ${route.path}`),
      description: policy?.description,
      restriction,
      ...termsAt(price),
      priced: route?.priceUrl === undefined ? undefined : remembered(termsAt),
      route,
      url: route && `${config.routes?.publicUrl}${route.path}`,
      hasRunner: served.has(serviceId) || selling.has(key) || route !== undefined,
      maxRunnerSilenceSecs: policy?.maxRunnerSilenceSecs ?? 0,
      // of a query it describes the parameters, and checks nothing
      input: route?.methods.every(isQueryMethod) ? undefined : policy?.input && withCheck(policy.input),
      isTopUp: selling.has(key),
      output: policy?.output,
      discovery: policy ? policy.discovery : plain,
    });
  }
  return jobs;
}

/** Of one job: the prices of requests that are remembered. */
const mostPrices = 256;

/** The same terms for the same price: what is made of a list of options is known by that list. */
function remembered(termsAt: (price: JobPrice) => PricedTerms): (price: JobPrice) => PricedTerms {
  const known = createBoundedCache<string, PricedTerms>(mostPrices);
  return (price) => {
    const key = `${price.wei} ${price.inUsd}`;
    const terms = known.get(key) ?? termsAt(price);
    known.set(key, terms);
    return terms;
  };
}

/** Of jobs without a policy. */
const plain = plainDiscovery(undefined);

/**
 * The option of a token. None if the job sells credit and the token's worth is not configured; none if the rate makes an amount
 * that no token contract can hold, or that no account can be credited with.
 */
function optionsOf(
  token: AcceptedToken,
  tokenRate: Rate | undefined,
  price: JobPrice,
  topUp: TopUpConfig | undefined,
): readonly SettlementOption[] {
  const { symbol, decimals } = token;
  const amount = priceIn(token, price, tokenRate);
  if (amount === undefined || amount >= beyondUint256) return [];
  const option = optionIn(token, amount);
  if (!topUp) return [option];
  const rate = currencyPerToken(topUp, symbol);
  const creditMicros = rate && topUpMicros(amount, decimals, rate);
  const isCredit = creditMicros !== undefined && creditMicros > 0n && creditMicros <= mostMicros;
  return isCredit ? [{ ...option, creditMicros }] : [];
}

/** This many atoms of an accepted token. */
export function optionIn(token: AcceptedToken, amount: bigint): SettlementOption {
  const { network, transferMethod, asset, symbol, decimals, payTo, eip712Name, eip712Version } = token;
  return { network, transferMethod, asset, symbol, decimals, amount, payTo, eip712Name, eip712Version };
}

function restrictionOf(policy: JobPolicy): Restriction | undefined {
  const { authMode, netRpcUrl, netContract, netNetwork, netServiceIdType: serviceIdType } = policy;
  const chainId = netNetwork && chainIdOf(netNetwork);
  return authMode && netRpcUrl && netContract
    ? { authMode, rpcUrl: netRpcUrl, chainId, contract: netContract, serviceIdType }
    : undefined;
}

export function findJob(catalog: Catalog, job: JobId): Job | undefined {
  return catalog.get(jobKey(job));
}

/** The jobs that can be bought, by service and index; those after a job, which itself need not be on sale. */
export function soldJobs(catalog: Catalog, after?: JobId): Job[] {
  const sold = [...catalog.values()].filter((job) => job.isSold && (!after || compare(job, after) > 0));
  return sold.toSorted(compare);
}

function compare(a: JobId, b: JobId): number {
  return a.serviceId - b.serviceId || a.jobIndex - b.jobIndex;
}

/** The address a job is bought at. */
export function jobUrl(publicUrl: string, job: JobId & Partial<Pick<Job, 'url'>>): string {
  return job.url ?? `${publicUrl}/x402/jobs/${job.serviceId}/${job.jobIndex}`;
}

/** What is sold there, as offers name it. */
export function jobResource(
  publicUrl: string,
  job: JobId & Partial<Pick<Job, 'name' | 'description' | 'url'>>,
): OfferedResource {
  return {
    url: jobUrl(publicUrl, job),
    description: job.description ?? job.name ?? `Job ${jobKey(job)}`,
    mimeType: 'application/json',
  };
}

function withCheck(input: JobInput): NonNullable<Job['input']> {
  return input.schema ? { ...input, check: boundedCheck(input.schema) } : input;
}

/** As long as one client may keep all others waiting, with what else its request takes. */
const maxCheckMs = 25;

function boundedCheck(schema: NonNullable<JobInput['schema']>): InputCheck {
  const { check, mayTakeLong } = compileSchema(schema);
  if (!mayTakeLong) return check;
  return (body) => {
    const checked = withinCpuMs(maxCheckMs, () => check(body));
    return checked.kind === 'done' ? checked.value : [checkedTooLong()];
  };
}

/** The content type and schema of a job as clients get them; undefined if it takes any. */
export function inputJson({ input }: Pick<Job, 'input'>) {
  return input && { content_type: input.contentType, ...(input.schema ? { json_schema: input.schema } : {}) };
}

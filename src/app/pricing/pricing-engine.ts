import { hexToBytes } from 'viem/utils';
import { jobKey } from '../../base/values/job.ts';
import { type Quote, quoteDigest } from '../../payments/rules/quote.ts';
import type { OperatorLog } from '../../base/values/operator-log.ts';
import type { Address, Hex } from '../../base/values/primitives.ts';
import { randomHex32 } from '../../base/runtime/random-hex.ts';
import { late, within } from '../../base/runtime/within.ts';
import type { GetJobPriceRequest } from './generated/pricing_pb.ts';
import { type PriceRequest, readPriceRequest } from './price-request.ts';
import { operatorOf, type QuoteSigner } from './signer.ts';
import { notOffered, type X402Option } from './x402-option.ts';

/** Wei by `service_id/job_index`, such as `1/0`. A function is asked for each request: the map of a gateway changes with a reload. */
export type Prices = ReadonlyMap<string, bigint> | (() => ReadonlyMap<string, bigint>);

export interface PricingEngineOptions {
  readonly prices: Prices;
  /** The operator's key: `keySigner(…)`, or a function that asks a KMS. */
  readonly signer: QuoteSigner;
  /** A gateway that issues and records the quotes, such as `gateway.quotes`. Without it the engine needs no ledger. */
  readonly x402?: X402Option | undefined;
  /** How long a quote is valid; with `x402` the gateway decides. Default 300. */
  readonly quoteTtlSecs?: number;
  /** How long a signature may take. Default 2,000. */
  readonly signTimeoutMs?: number;
  /** How long the gateway may take to issue a quote. A later quote stays on record, but no client gets it. Default 5,000. */
  readonly issueTimeoutMs?: number;
  readonly log?: OperatorLog | undefined;
  /** The clock, in Unix seconds. */
  readonly nowSecs?: () => number;
}

export type PriceOutcome = Priced | PriceRefusal;

/** A signed quote. */
export interface Priced {
  readonly kind: 'priced';
  readonly quote: Quote;
  readonly digest: Hex;
  readonly signature: Uint8Array;
  /** Undefined if the engine does not sell by x402. */
  readonly x402:
    | { readonly kind: 'payable'; readonly endpoint: string }
    | { readonly kind: 'not_offered'; readonly code: string }
    | undefined;
}

export interface PriceRefusal {
  readonly kind: 'refused';
  readonly code:
    | 'invalid_request'
    | 'unknown_job'
    /** The gateway issues no more quotes at this moment. */
    | 'overloaded'
    | 'unavailable';
  /** For the client. */
  readonly reason: string;
}

export interface PricingEngine {
  readonly operator: Address;
  /** Never rejects. */
  getJobPrice(message: GetJobPriceRequest): Promise<PriceOutcome>;
}

const askAgain = 'Nothing was charged. Ask again.';
const silentLog: OperatorLog = { info() {}, warn() {}, error() {} };

/**
 * Answers a job's price, with the operator's signature over the quote's digest.
 * @throws TypeError or RangeError for options that cannot be used
 */
export function createPricingEngine(options: PricingEngineOptions): PricingEngine {
  const { prices, x402, quoteTtlSecs = 300, log = silentLog } = options;
  const { issueTimeoutMs = 5_000 } = options;
  const nowSecs = options.nowSecs ?? (() => Math.floor(Date.now() / 1_000));
  const operator = operatorOf(options.signer, options.signTimeoutMs ?? 2_000);
  checkOptions(prices, quoteTtlSecs);
  const noteSigner = reportSigner(log);

  const sign = async (quote: Quote, digest: Hex, sold: Priced['x402']): Promise<PriceOutcome> => {
    const signed = await operator.sign(hexToBytes(digest));
    noteSigner(signed.kind === 'signed' ? undefined : signed.cause);
    if (signed.kind === 'unavailable')
      return refused('unavailable', `The quote could not be signed. ${askAgain}`);
    return { kind: 'priced', quote, digest, signature: signed.signature, x402: sold };
  };

  const priceAlone = (request: PriceRequest, priceWei: bigint, code?: string): Promise<PriceOutcome> => {
    const issuedAt = nowSecs();
    const times = { issuedAt, expiresAt: issuedAt + quoteTtlSecs };
    const quote: Quote = {
      ...request,
      ...times,
      priceWei,
      options: noOptions,
      salt: randomHex32(),
      isSummarised: false,
    };
    return sign(quote, quoteDigest(quote), code === undefined ? undefined : { kind: 'not_offered', code });
  };

  const priceByX402 = async (
    { issue }: X402Option,
    request: PriceRequest,
    priceWei: bigint,
  ): Promise<PriceOutcome> => {
    const issued = await within(issueTimeoutMs, issue(request));
    if (issued === late) throw new Error(`the gateway issued no quote in ${issueTimeoutMs} ms`);
    if (issued.kind === 'refused')
      return notOffered.has(issued.code)
        ? priceAlone(request, priceWei, issued.code)
        : refused(
            issued.code === 'overloaded' ? 'overloaded' : 'unavailable',
            `The gateway issues no quote now (${issued.code}). ${askAgain}`,
          );
    const { quote, digest, endpoint } = issued;
    const wrong = disagreement(request, priceWei, issued);
    if (wrong === undefined) return sign(quote, digest, { kind: 'payable', endpoint });
    log.error({ ...request, digest, wrong }, 'the gateway issued a quote that was not asked for');
    return refused('unavailable', `The gateway and the price map disagree. ${askAgain}`);
  };

  const answer = async (message: GetJobPriceRequest): Promise<PriceOutcome> => {
    const read = readPriceRequest(message);
    if (read.kind === 'invalid') return refused('invalid_request', read.reason);
    const { request } = read;
    const priceWei = (typeof prices === 'function' ? prices() : prices).get(jobKey(request));
    if (priceWei === undefined)
      return refused('unknown_job', `job ${jobKey(request)} (service_id/job_index) has no price`);
    checkPrice(jobKey(request), priceWei);
    return x402 ? priceByX402(x402, request, priceWei) : priceAlone(request, priceWei);
  };

  return {
    operator: operator.address,
    getJobPrice: (message) =>
      answer(message).catch((err: unknown) => {
        log.error({ err }, 'a request for a price failed');
        return refused('unavailable', `The request failed. ${askAgain}`);
      }),
  };
}

/** One list for all quotes: the hash of a list is kept with it. */
const noOptions: Quote['options'] = [];

function refused(code: PriceRefusal['code'], reason: string): PriceRefusal {
  return { kind: 'refused', code, reason };
}

/** The name of the value that differs from the request, the price map or the quote's own digest. */
function disagreement(
  request: PriceRequest,
  priceWei: bigint,
  { quote, digest }: { readonly quote: Quote; readonly digest: Hex },
): string | undefined {
  for (const field of ['serviceId', 'jobIndex', 'requester', 'inputsHash'] as const)
    if (quote[field] !== request[field]) return field;
  if (quote.priceWei !== priceWei) return 'priceWei';
  if (quote.isSummarised || quote.options.length === 0) return 'options';
  return quoteDigest(quote) === digest ? undefined : 'digest';
}

/** Logs when the signer fails and when it works again: every request meets a signer that is down. */
function reportSigner(log: OperatorLog): (cause: string | undefined) => void {
  let isFailing = false;
  return (cause) => {
    if (cause !== undefined && !isFailing)
      log.warn({ cause: cause.slice(0, 300) }, 'the signer gives no valid signature: no price is answered');
    if (cause === undefined && isFailing) log.info({}, 'the signer signs again');
    isFailing = cause !== undefined;
  };
}

function checkOptions(prices: Prices, ttlSecs: number): void {
  if (!Number.isInteger(ttlSecs) || ttlSecs < 1 || ttlSecs > 86_400)
    throw new RangeError('quoteTtlSecs must be a whole number from 1 to 86400');
  if (typeof prices === 'function') return;
  // the prices of a configuration are a map that cannot change, and no Map
  if (typeof prices?.get !== 'function' || !(Symbol.iterator in prices))
    throw new TypeError('prices must be a Map, or a function that returns one');
  for (const [key, wei] of prices) {
    if (!/^\d+\/\d+$/.test(key))
      throw new RangeError(`the price of ${key} is never found: a key is service_id/job_index, such as 1/0`);
    checkPrice(key, wei);
  }
}

/** A price that the digest has a word for. */
function checkPrice(key: string, wei: bigint): void {
  if (typeof wei !== 'bigint' || wei <= 0n || wei >= 1n << 256n)
    throw new RangeError(`the price of job ${key} must be a bigint above 0 and below 2^256 wei`);
}

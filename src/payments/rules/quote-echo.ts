import { createHash, createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { areEqualSecrets } from '../../base/values/equal-secrets.ts';
import { z } from 'zod';
import type { EventData } from '../../ledger/rules/event.ts';
import { address, count, hex32, micros, uint256 } from '../../ledger/rules/fields.ts';
import { type Address, type Hex, parseAddress } from '../../base/values/primitives.ts';
import { mapSecrets, type RotatingSecret } from '../../base/values/rotating-secret.ts';
import type { JobId } from '../../base/values/job.ts';
import {
  optionHash,
  provenQuoteToData,
  type Quote,
  quoteDigestOf,
  type SettlementOption,
  zeroAddress,
  zeroHash,
} from './quote.ts';
import type { TransferMethod } from '../../base/values/transfer-method.ts';

/** Authenticates the prices of quotes. Its id says which key made a MAC, and nothing about the key. */
export interface QuoteKey {
  readonly id: string;
  readonly key: KeyObject;
}

export type QuoteKeys = RotatingSecret<QuoteKey>;

/** Where a quote is valid. A key that is used for two ledgers, by mistake, does not carry the prices of one into the other. */
export interface QuoteRealm {
  readonly ledgerId: string;
  /** Of the log: a recovery ends the quotes of the ledger that lost events. */
  readonly generation: number;
  readonly lane: number;
  /** The gateway's public address. */
  readonly origin: string;
}

/**
 * What an offer adds so that its quote need not be stored: the quote's fields that the offer does not show, the hashes of all
 * options and the MAC. Payers echo it with the option that they accept.
 */
export const quoteEcho = z.strictObject({
  keyId: z.string().max(16),
  priceWei: uint256,
  requester: address.optional(),
  inputsHash: hex32.optional(),
  issuedAt: count,
  expiresAt: count,
  salt: hex32,
  symbol: z.string().max(64),
  decimals: z.int().min(0).max(255),
  creditMicros: micros.optional(),
  optionHashes: z.array(hex32).min(1).max(32),
  summarised: z.literal(true).optional(),
  mac: z.string().max(43),
});
export type QuoteEcho = z.infer<typeof quoteEcho>;

/** The accepted option as the payment names it, spelt as its client spelt it. */
export interface EchoedTerms {
  readonly network: SettlementOption['network'];
  readonly transferMethod: TransferMethod;
  readonly asset: Address;
  readonly payTo: string;
  readonly amount: string;
  readonly eip712Name: string | undefined;
  readonly eip712Version: string | undefined;
  readonly submitter?: Address | undefined;
  readonly quoteDigest: Hex;
  readonly echo: QuoteEcho;
}

export function quoteKeysOf(secrets: RotatingSecret): QuoteKeys {
  return mapSecrets(secrets, (secret) => ({
    id: createHash('sha256').update(`tollbook quote key:${secret}`).digest('hex').slice(0, 16),
    key: createSecretKey(secret, 'utf8'),
  }));
}

/** What the offer of one option of a quote carries. */
export function writeQuoteEcho(
  [key]: QuoteKeys,
  realm: QuoteRealm,
  quote: Quote,
  digest: Hex,
  option: SettlementOption,
): QuoteEcho {
  const { priceWei, requester, inputsHash, issuedAt, expiresAt, salt } = quote;
  return {
    keyId: key.id,
    priceWei: String(priceWei),
    ...(requester === zeroAddress ? {} : { requester }),
    ...(inputsHash === zeroHash ? {} : { inputsHash }),
    issuedAt,
    expiresAt,
    salt,
    symbol: option.symbol,
    decimals: option.decimals,
    ...(option.creditMicros === undefined ? {} : { creditMicros: String(option.creditMicros) }),
    optionHashes: quote.options.map(optionHash),
    ...(quote.isSummarised ? { summarised: true } : {}),
    mac: macOf(key, realm, quote, digest, optionHash(option)).toString('base64url'),
  };
}

/**
 * The quote that a payment for a job echoes, as `quote_issued` records it, and the id of the key that made its MAC. Undefined
 * unless every echoed field is the one that was offered, here, for this job.
 */
export function authenticQuote(
  keys: QuoteKeys,
  realm: QuoteRealm,
  job: JobId,
  terms: EchoedTerms,
): { readonly data: EventData<'quote_issued'>; readonly keyId: string } | undefined {
  const { echo, quoteDigest } = terms;
  const key = keys.find(({ id }) => id === echo.keyId);
  const option = optionOf(terms);
  if (!key || !option) return undefined;
  const hash = optionHash(option);
  const hashes = echo.optionHashes as Hex[];
  const priceWei = BigInt(echo.priceWei);
  // one that has more bits than the digest's word
  if (priceWei >= 2n ** 256n) return undefined;
  const quote = {
    serviceId: job.serviceId,
    jobIndex: job.jobIndex,
    priceWei,
    requester: (echo.requester ?? zeroAddress) as Address,
    inputsHash: (echo.inputsHash ?? zeroHash) as Hex,
    issuedAt: echo.issuedAt,
    expiresAt: echo.expiresAt,
    salt: echo.salt as Hex,
    isSummarised: echo.summarised === true,
  };
  if (!hashes.includes(hash) || quoteDigestOf(quote, hashes) !== quoteDigest) return undefined;
  const mac = Buffer.from(echo.mac, 'base64url');
  if (!areEqualSecrets(mac, macOf(key, realm, quote, quoteDigest, hash))) return undefined;
  return { data: provenQuoteToData(quote, option, hashes), keyId: key.id };
}

/** Undefined if a term is not spelt as any option's is. */
function optionOf({ echo, ...terms }: EchoedTerms): SettlementOption | undefined {
  const { network, transferMethod, asset, eip712Name, eip712Version, submitter } = terms;
  const payTo = parseAddress(terms.payTo);
  const amount = uint256.safeParse(terms.amount);
  if (!payTo || !amount.success || eip712Name === undefined || eip712Version === undefined) return undefined;
  const { symbol, decimals, creditMicros } = echo;
  return {
    network,
    transferMethod,
    asset,
    symbol,
    decimals,
    amount: BigInt(amount.data),
    payTo,
    eip712Name,
    eip712Version,
    ...(transferMethod === 'upto' && { submitter }),
    ...(creditMicros === undefined ? {} : { creditMicros: BigInt(creditMicros) }),
  };
}

/**
 * The digest stands for the whole quote and the hash for the whole option. Terms that decide about a payment are named once
 * more, so that the MAC does not depend on how the digest is made.
 */
function macOf(
  { id, key }: QuoteKey,
  { ledgerId, generation, lane, origin }: QuoteRealm,
  {
    serviceId,
    jobIndex,
    priceWei,
    requester,
    inputsHash,
    issuedAt,
    expiresAt,
    isSummarised,
  }: Omit<Quote, 'options'>,
  digest: Hex,
  hashOfOption: Hex,
): Buffer {
  const where = ['tollbook quote', id, ledgerId, generation, lane, origin];
  const what = [
    serviceId,
    jobIndex,
    String(priceWei),
    requester,
    inputsHash,
    issuedAt,
    expiresAt,
    isSummarised,
  ];
  const text = JSON.stringify([...where, ...what, digest, hashOfOption]);
  return createHmac('sha256', key).update(text).digest();
}

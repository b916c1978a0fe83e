import { concatBytes, stringToBytes } from 'viem/utils';
import { createBoundedCache } from '../../base/values/bounded-cache.ts';
import { canonicalJson } from '../../base/values/canonical-json.ts';
import type { EventData } from '../../ledger/rules/event.ts';
import type { OptionData, SignedPaymentData } from '../../ledger/rules/payment-events.ts';
import type { JobId } from '../../base/values/job.ts';
import { keccak256 } from '../../base/values/keccak.ts';
import type { TransferMethod } from '../../base/values/transfer-method.ts';
import type { OfferTerms } from './schemes/scheme.ts';
import type { Address, Caip2, Hex } from '../../base/values/primitives.ts';

/** One way to pay a quote. `amount` is in the token's atoms. */
export interface SettlementOption extends OfferTerms {
  readonly transferMethod: TransferMethod;
  readonly symbol: string;
  readonly decimals: number;
  /** The credit that the payment buys, in micros, if the job sells credit. */
  readonly creditMicros?: bigint;
}

/** A price that is fixed until it expires. Times are Unix seconds of the database's clock. */
export interface Quote extends JobId {
  readonly priceWei: bigint;
  readonly options: readonly SettlementOption[];
  /** The only address that may pay it; the zero address where any may. */
  readonly requester: Address;
  /** Hash of the inputs it is bound to; zero if it is open. */
  readonly inputsHash: Hex;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly salt: Hex;
  /** Counted by a sum of quotes, and recorded by itself only if it is paid. Decided as it is issued; not part of its digest. */
  readonly isSummarised: boolean;
  /** Which service issued it; undefined for a 402 answer. Not part of its digest. */
  readonly source?: 'pricing';
}

export const zeroAddress: Address = `0x${'0'.repeat(40)}`;
export const zeroHash: Hex = `0x${'0'.repeat(64)}`;

/** The EIP-712 type of a quote, to check a digest with other tools. */
export const quoteTypedData = {
  domain: { name: 'Tollbook', version: '1' },
  primaryType: 'JobQuote',
  types: {
    JobQuote: [
      { name: 'serviceId', type: 'uint64' },
      { name: 'jobIndex', type: 'uint32' },
      { name: 'priceWei', type: 'uint256' },
      { name: 'optionsHash', type: 'bytes32' },
      { name: 'requester', type: 'address' },
      { name: 'inputsHash', type: 'bytes32' },
      { name: 'issuedAt', type: 'uint64' },
      { name: 'expiresAt', type: 'uint64' },
      { name: 'salt', type: 'bytes32' },
    ],
  },
} as const;

const typeHash = (type: string): Uint8Array => keccak256(stringToBytes(type));

const quoteTypeHash = typeHash(
  `JobQuote(${quoteTypedData.types.JobQuote.map(({ type, name }) => `${type} ${name}`).join(',')})`,
);
const domainSeparator = keccak256(
  concatBytes([
    typeHash('EIP712Domain(string name,string version)'),
    typeHash(quoteTypedData.domain.name),
    typeHash(quoteTypedData.domain.version),
  ]),
);

const wordBytes = 32;
const structBytes = Buffer.alloc(10 * wordBytes);
structBytes.set(quoteTypeHash);
const signedBytes = Buffer.concat([Buffer.of(0x19, 0x01), domainSeparator, Buffer.alloc(wordBytes)]);

/**
 * The quote's id: its EIP-712 digest. Encoded by hand for speed, since every 402 answer waits for it; a test compares it with
 * viem's encoder.
 */
export function quoteDigest(quote: Quote): Hex {
  return digestWith(quote, optionsHash(quote.options));
}

/** The digest of a quote whose options are known by their hashes, in their order. */
export function quoteDigestOf(quote: Omit<Quote, 'options'>, optionHashes: readonly Hex[]): Hex {
  return digestWith(quote, hashOptions(optionHashes));
}

function digestWith(quote: Omit<Quote, 'options'>, hashOfOptions: Uint8Array): Hex {
  writeNumber(1, quote.serviceId);
  writeNumber(2, quote.jobIndex);
  writeHex(3, quote.priceWei.toString(16));
  structBytes.set(hashOfOptions, 4 * wordBytes);
  writeHex(5, quote.requester.slice(2));
  writeHex(6, quote.inputsHash.slice(2));
  writeNumber(7, quote.issuedAt);
  writeNumber(8, quote.expiresAt);
  writeHex(9, quote.salt.slice(2));
  signedBytes.set(keccak256(structBytes), 2 + wordBytes);
  return `0x${Buffer.from(keccak256(signedBytes)).toString('hex')}`;
}

function writeHex(index: number, hex: string): void {
  structBytes.write(hex.padStart(2 * wordBytes, '0'), index * wordBytes, 'hex');
}

/** The bytes of the word before the last eight are always zero. */
function writeNumber(index: number, value: number): void {
  const end = (index + 1) * wordBytes;
  structBytes.writeUInt32BE(Math.floor(value / 2 ** 32), end - 8);
  structBytes.writeUInt32BE(value % 2 ** 32, end - 4);
}

const optionsHashes = new WeakMap<readonly SettlementOption[], Uint8Array>();

/** The hash of all options of a quote. Cached by the list object: a job's options change only with its config. */
export function optionsHash(options: readonly SettlementOption[]): Uint8Array {
  let hash = optionsHashes.get(options);
  if (!hash) {
    hash = hashOptions(options.map(optionHash));
    optionsHashes.set(options, hash);
  }
  return hash;
}

/** keccak256 of the ordered hashes of a quote's options: one option proves its place only with the other options' hashes. */
function hashOptions(hashes: readonly Hex[]): Uint8Array {
  return keccak256(Buffer.from(hashes.map((hash) => hash.slice(2)).join(''), 'hex'));
}

const optionHashes = new WeakMap<SettlementOption, Hex>();

/** Each payment echoes an option, nearly always one of a few. Any client can fill it: with 4 MB of texts at most. */
const optionHashesByText = createBoundedCache<string, Hex>(256);

/** keccak256 of an option's canonical JSON. Cached by the option, and by its text. */
export function optionHash(option: SettlementOption): Hex {
  const known = optionHashes.get(option);
  if (known) return known;
  const json = optionJson(option);
  const text = JSON.stringify(json);
  let hash = optionHashesByText.get(text);
  if (!hash) {
    hash = `0x${Buffer.from(keccak256(stringToBytes(canonicalJson(json)))).toString('hex')}`;
    optionHashesByText.set(text, hash);
  }
  optionHashes.set(option, hash);
  return hash;
}

/** A settlement option as JSON: amounts as decimal strings, keys in snake case. */
export function optionJson(option: SettlementOption) {
  return {
    network: option.network,
    transfer_method: option.transferMethod,
    asset: option.asset,
    symbol: option.symbol,
    decimals: option.decimals,
    amount: String(option.amount),
    pay_to: option.payTo,
    eip712_name: option.eip712Name,
    eip712_version: option.eip712Version,
    ...(option.submitter === undefined ? {} : { submitter: option.submitter }),
    ...(option.creditMicros === undefined ? {} : { credit_micros: String(option.creditMicros) }),
  };
}

/** The options of a recorded quote that are on record in full. */
export function fullOptions({ options }: Pick<EventData<'quote_issued'>, 'options'>): readonly OptionData[] {
  return options.filter((option) => typeof option !== 'string');
}

/** The inverse of {@link optionJson}, for options read back from the ledger. */
export function optionFromJson(json: OptionData): SettlementOption {
  return {
    network: json.network as Caip2,
    transferMethod: json.transfer_method,
    asset: json.asset as Address,
    symbol: json.symbol,
    decimals: json.decimals,
    amount: BigInt(json.amount),
    payTo: json.pay_to as Address,
    eip712Name: json.eip712_name,
    eip712Version: json.eip712_version,
    ...(json.submitter === undefined ? {} : { submitter: json.submitter as Address }),
    ...(json.credit_micros === undefined ? {} : { creditMicros: BigInt(json.credit_micros) }),
  };
}

/** The credit that a payment of a quote buys, in micros; undefined if that option of the quote sells none. */
export function creditOf(
  quote: Pick<EventData<'quote_issued'>, 'options'>,
  payment: Pick<SignedPaymentData, 'network' | 'transfer_method' | 'asset' | 'pay_to' | 'amount'>,
): bigint | undefined {
  const { network, transfer_method: method, asset, pay_to: payTo, amount } = payment;
  const paid = fullOptions(quote).find(
    (option) =>
      option.network === network &&
      option.transfer_method === method &&
      option.asset === asset &&
      option.pay_to === payTo &&
      option.amount === amount,
  );
  return paid?.credit_micros === undefined ? undefined : BigInt(paid.credit_micros);
}

/** The quote as `quote_issued` stores it: its digest can be computed only from this. */
export function quoteToData(quote: Quote): EventData<'quote_issued'> {
  return { ...recordedTerms(quote), options: quote.options.map(optionJson) };
}

/** What the digest of a quote stands for, in full. */
export function quoteTerms(quote: Quote) {
  return { ...signedTerms(quote), options: quote.options.map(optionJson) };
}

/** The same for a quote of which only one option is known in full, and the others by their hashes. */
export function provenQuoteToData(
  quote: Omit<Quote, 'options'>,
  option: SettlementOption,
  hashes: readonly Hex[],
): EventData<'quote_issued'> {
  const own = optionHash(option);
  const options = hashes.map((hash) => (hash === own ? optionJson(option) : hash));
  return { ...recordedTerms(quote), options };
}

function recordedTerms(quote: Omit<Quote, 'options'>) {
  return {
    ...signedTerms(quote),
    ...(quote.isSummarised ? { summarised: true as const } : {}),
    ...(quote.source ? { source: quote.source } : {}),
  };
}

function signedTerms(quote: Omit<Quote, 'options'>) {
  return {
    service_id: quote.serviceId,
    job_index: quote.jobIndex,
    price_wei: String(quote.priceWei),
    requester: quote.requester,
    inputs_hash: quote.inputsHash,
    issued_at: quote.issuedAt,
    expires_at: quote.expiresAt,
    salt: quote.salt,
  };
}

/** The digest of a quote read back from the ledger, whether or not all of its options are on record in full. */
export function recordedDigest(data: EventData<'quote_issued'>): Hex {
  return digestWith(termsFromData(data), recordedOptionsHash(data.options));
}

/** The terms of a quote from its event or its token. */
export function termsFromData(data: Omit<EventData<'quote_issued'>, 'options'>): Omit<Quote, 'options'> {
  return {
    serviceId: data.service_id,
    jobIndex: data.job_index,
    priceWei: BigInt(data.price_wei),
    requester: data.requester as Address,
    inputsHash: data.inputs_hash as Hex,
    issuedAt: data.issued_at,
    expiresAt: data.expires_at,
    salt: data.salt as Hex,
    isSummarised: data.summarised === true,
  };
}

const recordedHashes = createBoundedCache<string, Uint8Array>(1_000);

/** Cached by the options' text: a job's options are the same in nearly all its quotes. */
function recordedOptionsHash(options: EventData<'quote_issued'>['options']): Uint8Array {
  const text = JSON.stringify(options);
  let hash = recordedHashes.get(text);
  if (!hash) {
    hash = hashOptions(
      options.map((option) =>
        typeof option === 'string' ? (option as Hex) : optionHash(optionFromJson(option)),
      ),
    );
    recordedHashes.set(text, hash);
  }
  return hash;
}

/** The hash by which a quote is bound to a body, or to what else its price was asked for. */
export function inputsHashOf(bound: Buffer): Hex {
  return `0x${Buffer.from(keccak256(bound)).toString('hex')}`;
}

/** Who alone may pay a quote, and only for which body; zero for any. */
export type QuoteBinding = Pick<Quote, 'requester' | 'inputsHash'>;

export type BindingCheck =
  /** `bodyKeccak256`: of the body, or of what else the price was asked for, if the quote is bound to one. */
  | { readonly kind: 'kept'; readonly bodyKeccak256: Hex | undefined }
  | { readonly kind: 'broken'; readonly reason: 'requester_mismatch' | 'inputs_hash_mismatch' };

/**
 * Whether a quote may be paid by this payer for this body.
 * @param payer in lower case; undefined if it is not known yet
 * @param body where a price depends on more than the body: what it was asked for
 */
export function checkBinding(
  { requester, inputsHash }: QuoteBinding,
  payer: string | undefined,
  body: Buffer,
): BindingCheck {
  if (payer !== undefined && requester !== zeroAddress && requester !== payer)
    return { kind: 'broken', reason: 'requester_mismatch' };
  if (inputsHash === zeroHash) return { kind: 'kept', bodyKeccak256: undefined };
  const bodyKeccak256 = inputsHashOf(body);
  return bodyKeccak256 === inputsHash
    ? { kind: 'kept', bodyKeccak256 }
    : { kind: 'broken', reason: 'inputs_hash_mismatch' };
}

import { concatBytes, stringToBytes } from 'viem/utils';
import { canonicalJson } from '../values/canonical-json.ts';
import type { EventData } from '../events/event.ts';
import type { SignedPaymentData } from '../events/payment-events.ts';
import type { JobId } from './job.ts';
import { keccak256 } from '../values/keccak.ts';
import type { TransferMethod } from './schemes/schemes.ts';
import type { Address, Caip2, Hex } from '../values/primitives.ts';

/** One way to pay a quote. `amount` is in the token's atoms. */
export interface SettlementOption {
  readonly network: Caip2;
  readonly transferMethod: TransferMethod;
  readonly asset: Address;
  readonly symbol: string;
  readonly decimals: number;
  readonly amount: bigint;
  readonly payTo: Address;
  /** The token contract's own EIP-712 domain, for the payer's signature. */
  readonly eip712Name: string;
  readonly eip712Version: string;
  /** The credit that the payment buys, in micros, where the job sells credit. */
  readonly creditMicros?: bigint;
}

/** A price that is fixed until it expires. Times are Unix seconds of the database's clock. */
export interface Quote extends JobId {
  readonly priceWei: bigint;
  readonly options: readonly SettlementOption[];
  /** The only address that may pay it; the zero address where any may. */
  readonly requester: Address;
  /** Hash of the inputs it is bound to; zero where it is open. */
  readonly inputsHash: Hex;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly salt: Hex;
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
  writeWord(1, quote.serviceId.toString(16));
  writeWord(2, quote.jobIndex.toString(16));
  writeWord(3, quote.priceWei.toString(16));
  structBytes.set(optionsHash(quote.options), 4 * wordBytes);
  writeWord(5, quote.requester.slice(2));
  writeWord(6, quote.inputsHash.slice(2));
  writeWord(7, quote.issuedAt.toString(16));
  writeWord(8, quote.expiresAt.toString(16));
  writeWord(9, quote.salt.slice(2));
  signedBytes.set(keccak256(structBytes), 2 + wordBytes);
  return `0x${Buffer.from(keccak256(signedBytes)).toString('hex')}`;
}

function writeWord(index: number, hex: string): void {
  structBytes.write(hex.padStart(2 * wordBytes, '0'), index * wordBytes, 'hex');
}

const optionsHashes = new WeakMap<readonly SettlementOption[], Uint8Array>();

/** The hash of all options of a quote. Cached by the list object: a job's options change only with its config. */
function optionsHash(options: readonly SettlementOption[]): Uint8Array {
  let hash = optionsHashes.get(options);
  if (!hash) {
    hash = hashOptions(options.map(optionHash));
    optionsHashes.set(options, hash);
  }
  return hash;
}

/** keccak256 of the ordered hashes of a quote's options: one option proves its place with the other options' hashes alone. */
function hashOptions(hashes: readonly Uint8Array[]): Uint8Array {
  return keccak256(concatBytes([...hashes]));
}

/** keccak256 of an option's canonical JSON. */
function optionHash(option: SettlementOption): Uint8Array {
  return keccak256(stringToBytes(canonicalJson(optionJson(option))));
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
    ...(option.creditMicros === undefined ? {} : { credit_micros: String(option.creditMicros) }),
  };
}

/** The inverse of {@link optionJson}, for options read back from the ledger. */
export function optionFromJson(json: EventData<'quote_issued'>['options'][number]): SettlementOption {
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
    ...(json.credit_micros === undefined ? {} : { creditMicros: BigInt(json.credit_micros) }),
  };
}

/** The credit that a payment of a quote buys, in micros; undefined where that option of the quote sells none. */
export function creditOf(
  { options }: Pick<EventData<'quote_issued'>, 'options'>,
  payment: Pick<SignedPaymentData, 'network' | 'transfer_method' | 'asset' | 'pay_to' | 'amount'>,
): bigint | undefined {
  const { network, transfer_method: method, asset, pay_to: payTo, amount } = payment;
  const paid = options.find(
    (option) =>
      option.network === network &&
      option.transfer_method === method &&
      option.asset === asset &&
      option.pay_to === payTo &&
      option.amount === amount,
  );
  return paid?.credit_micros === undefined ? undefined : BigInt(paid.credit_micros);
}

/** The quote as `quote_issued` stores it: its digest can be computed from this alone. */
export function quoteToData(quote: Quote): EventData<'quote_issued'> {
  return {
    service_id: quote.serviceId,
    job_index: quote.jobIndex,
    price_wei: String(quote.priceWei),
    options: quote.options.map(optionJson),
    requester: quote.requester,
    inputs_hash: quote.inputsHash,
    issued_at: quote.issuedAt,
    expires_at: quote.expiresAt,
    salt: quote.salt,
  };
}

/** The inverse of {@link quoteToData}, for quotes read back from the ledger. */
export function quoteFromData(data: EventData<'quote_issued'>): Quote {
  return {
    serviceId: data.service_id,
    jobIndex: data.job_index,
    priceWei: BigInt(data.price_wei),
    options: data.options.map(optionFromJson),
    requester: data.requester as Address,
    inputsHash: data.inputs_hash as Hex,
    issuedAt: data.issued_at,
    expiresAt: data.expires_at,
    salt: data.salt as Hex,
  };
}

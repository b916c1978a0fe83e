import { bytesToHex, concatBytes, numberToBytes, stringToBytes, toBytes } from 'viem/utils';
import { parseCaller } from '../../../payments/rules/caller-signature.ts';
import { parseJsonObject } from '../../../base/values/exact-json.ts';
import { domainSeparator } from '../../../base/values/eip712-domain.ts';
import { keccak256 } from '../../../base/values/keccak.ts';
import type { OpenAiErrorName } from '../../../base/errors/openai-error.ts';
import { type Address, type Hex, isHex32 } from '../../../base/values/primitives.ts';
import { parseSignature, recoverSigner } from '../../../base/values/ethereum-signature.ts';
import type { EventData } from '../../../ledger/rules/event.ts';

/** A well-formed spend authorization of a prepaid contract; its signature and terms are not checked yet. */
export interface SpendAuth {
  /** The account's name, lower case: one account has one spelling. */
  readonly commitment: Hex;
  readonly serviceId: bigint;
  readonly jobIndex: number;
  /** The token's atoms, above zero. */
  readonly amount: bigint;
  readonly operator: Address;
  readonly nonce: bigint;
  /** Unix seconds. */
  readonly expiry: bigint;
  /** 65 bytes, low s, v 27 or 28. */
  readonly signature: Hex;
}

/** The contract that a spend authorization is signed for: half of its EIP-712 domain. */
export interface SpendDomain {
  readonly chainId: number;
  readonly contract: Address;
}

/** Why a spend authorization is refused: a code of the error table. */
export type SpendAuthRefusal = Extract<
  OpenAiErrorName,
  | 'invalid_amount'
  | 'below_min_charge'
  | 'exceeds_max_spend'
  | 'operator_mismatch'
  | 'service_id_mismatch'
  | 'nonce_replay'
  | 'invalid_spend_auth'
  | 'signer_mismatch'
  | 'insufficient_balance'
  | 'authorization_failed'
>;

/** Several times the length of the longest one; twice that in hexadecimal. */
const maxJsonChars = 2_048;
const keys = [
  'commitment',
  'serviceId',
  'jobIndex',
  'amount',
  'operator',
  'nonce',
  'expiry',
  'signature',
] as const;
const maxUint8 = 0xffn;
const maxUint64 = 2n ** 64n - 1n;
const maxUint256 = 2n ** 256n - 1n;

/**
 * Reads the header `X-Payment-Signature`: JSON, or its bytes in hexadecimal with or without 0x. Every
 * field is required and no other is allowed. Returns the refusal: `invalid_amount` where only the amount is wrong.
 */
export function readSpendAuth(
  header: string,
): SpendAuth | { readonly refusal: 'invalid_spend_auth' | 'invalid_amount' } {
  const fields = readFields(header);
  if (!fields) return { refusal: 'invalid_spend_auth' };
  const commitment = textOf(fields['commitment'])?.toLowerCase();
  const operator = parseCaller(textOf(fields['operator']) ?? '');
  const signature = textOf(fields['signature'])?.toLowerCase();
  const serviceId = wholeNumber(fields['serviceId'], maxUint64);
  const jobIndex = wholeNumber(fields['jobIndex'], maxUint8);
  const nonce = wholeNumber(fields['nonce'], maxUint256);
  const expiry = wholeNumber(fields['expiry'], maxUint64);
  if (
    commitment === undefined ||
    !isHex32(commitment) ||
    operator === undefined ||
    signature === undefined ||
    !isStrictSignature(signature) ||
    serviceId === undefined ||
    jobIndex === undefined ||
    nonce === undefined ||
    expiry === undefined
  )
    return { refusal: 'invalid_spend_auth' };
  const amount = wholeNumber(textOf(fields['amount']), maxUint256);
  if (amount === undefined || amount === 0n) return { refusal: 'invalid_amount' };
  return { commitment, serviceId, jobIndex: Number(jobIndex), amount, operator, nonce, expiry, signature };
}

function readFields(header: string): Readonly<Record<string, unknown>> | undefined {
  const text = header.startsWith('{') ? header : textOfHex(header);
  // numbers stay text: a nonce may be longer than a double can keep
  const fields =
    text !== undefined && text.length <= maxJsonChars && /^[ -~]*$/.test(text)
      ? parseJsonObject(stringToBytes(text))
      : undefined;
  if (typeof fields !== 'object') return undefined;
  const isWhole = Object.keys(fields).length === keys.length;
  return isWhole && keys.every((key) => Object.hasOwn(fields, key)) ? fields : undefined;
}

function textOfHex(header: string): string | undefined {
  const digits = header.startsWith('0x') ? header.slice(2) : header;
  if (digits.length > 2 * maxJsonChars || digits.length % 2 !== 0 || !/^[0-9a-f]+$/i.test(digits))
    return undefined;
  return Buffer.from(digits, 'hex').toString('latin1');
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** A JSON number, or a decimal text, up to a bound. */
function wholeNumber(value: unknown, max: bigint): bigint | undefined {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text === undefined || !/^(?:0|[1-9]\d{0,77})$/.test(text)) return undefined;
  const number = BigInt(text);
  return number <= max ? number : undefined;
}

/** Contracts refuse a v of 0 or 1, so it is refused here before anything is counted on it. */
function isStrictSignature(text: string): text is Hex {
  return /1[bc]$/.test(text) && parseSignature(text) !== undefined;
}

const word = (value: bigint | number): Uint8Array => numberToBytes(value, { size: 32 });
const hashOf = (text: string): Uint8Array => keccak256(stringToBytes(text));

const spendType = hashOf(
  'SpendAuthorization(bytes32 commitment,uint64 serviceId,uint8 jobIndex,uint256 amount,address operator,uint256 nonce,uint64 expiry)',
);
const prefix = new Uint8Array([0x19, 0x01]);

/** The EIP-712 domain that spends are signed for. */
export function spendDomainSeparator({ chainId, contract }: SpendDomain): Uint8Array {
  return domainSeparator({ name: 'ShieldedCredits', version: '1', chainId, contract });
}

/** What a payer signs (EIP-712), encoded word by word; a test holds it against viem's own encoder. */
export function spendAuthDigest(domain: SpendDomain, auth: SpendAuth): Uint8Array {
  const separator = spendDomainSeparator(domain);
  const { commitment, serviceId, jobIndex, amount, operator, nonce, expiry } = auth;
  const numbers = [serviceId, BigInt(jobIndex), amount, BigInt(operator), nonce, expiry].map(word);
  const struct = keccak256(concatBytes([spendType, toBytes(commitment), ...numbers]));
  return keccak256(concatBytes([prefix, separator, struct]));
}

/** The name that the contract keeps an authorized spend under: neither its amount nor its operator is in it. */
export function spendAuthHash({
  commitment,
  serviceId,
  jobIndex,
  nonce,
}: Pick<SpendAuth, 'commitment' | 'serviceId' | 'jobIndex' | 'nonce'>): Hex {
  const words = [serviceId, BigInt(jobIndex), nonce].map(word);
  return bytesToHex(keccak256(concatBytes([toBytes(commitment), ...words])));
}

/** The key that signed it; undefined if no key could have. */
export function recoverSpender(domain: SpendDomain, auth: SpendAuth): Address | undefined {
  const signature = isStrictSignature(auth.signature) ? parseSignature(auth.signature) : undefined;
  return signature && recoverSigner(spendAuthDigest(domain, auth), signature);
}

/** Whether a text can be a client's secret for the request that its spend pays for: one that is not guessed by chance. */
export function isSpendSecret(text: string): boolean {
  return /^[!-~]{16,128}$/.test(text);
}

/** What an operator takes. Amounts are the token's atoms. */
interface SpendTerms {
  readonly operator: Address;
  readonly serviceId: bigint;
  readonly minCharge: bigint;
  readonly maxSpend: bigint;
}

/**
 * The first of the operator's terms that an authorization does not keep to; `invalid_spend_auth` if it expires before
 * `neededUntilSecs`.
 */
export function spendTermsRefusal(
  auth: SpendAuth,
  { operator, serviceId, minCharge, maxSpend }: SpendTerms,
  neededUntilSecs: number,
): SpendAuthRefusal | undefined {
  if (auth.operator !== operator) return 'operator_mismatch';
  if (auth.serviceId !== serviceId) return 'service_id_mismatch';
  if (auth.amount < minCharge) return 'below_min_charge';
  if (auth.amount > maxSpend) return 'exceeds_max_spend';
  return auth.expiry < BigInt(neededUntilSecs) ? 'invalid_spend_auth' : undefined;
}

const microsPerUnit = 1_000_000n;

/** Micros of the currency as atoms, rounded up: a fraction of an atom is the operator's. */
export function atomsOfMicros(amountMicros: bigint, atomsPerUnit: bigint): bigint {
  return (amountMicros * atomsPerUnit + microsPerUnit - 1n) / microsPerUnit;
}

/** How many micros an amount of atoms covers, rounded down. */
export function microsOfAtoms(atoms: bigint, atomsPerUnit: bigint): bigint {
  return (atoms * microsPerUnit) / atomsPerUnit;
}

const weiPerUnit = 10n ** 18n;

/**
 * The most that the gas of one transaction for a spend may cost, in wei: this many percent of the spend's amount.
 * @param atomsPerNativeUnit the value of 10^18 wei in the token's atoms
 */
export function gasBoundWei(amountAtoms: bigint, atomsPerNativeUnit: bigint, percent: number): bigint {
  return (amountAtoms * weiPerUnit * BigInt(percent)) / (atomsPerNativeUnit * 100n);
}

/** The spend authorization that the ledger holds, complete enough to be landed again. */
export function authFromData(data: EventData<'spend_accepted'>): SpendAuth {
  return {
    commitment: data.commitment as Hex,
    serviceId: BigInt(data.service_id),
    jobIndex: data.job_index,
    amount: BigInt(data.amount),
    operator: data.operator as Address,
    nonce: BigInt(data.nonce),
    expiry: BigInt(data.expiry),
    signature: data.signature as Hex,
  };
}

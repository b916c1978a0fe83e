import { bytesToHex, hexToBytes } from 'viem/utils';
import { type JobId, maxJobIndex, maxServiceId } from '../../base/values/job.ts';
import { zeroAddress, zeroHash, optionsHash, type SettlementOption } from '../../payments/rules/quote.ts';
import type { Address, Hex } from '../../base/values/primitives.ts';
import type {
  GetJobPriceRequest,
  GetJobPriceResponseSchema,
  SettlementOptionSchema,
} from './generated/pricing_pb.ts';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { schemes } from '../../payments/rules/schemes/schemes.ts';
import type { Priced } from './pricing-engine.ts';

/** Which quote a client asks for: as a quote has it, with the zero address where any may use it and the zero hash where it is open. */
export interface PriceRequest extends JobId {
  readonly requester: Address;
  readonly inputsHash: Hex;
}

type PriceRequestRead =
  | { readonly kind: 'valid'; readonly request: PriceRequest }
  | { readonly kind: 'invalid'; readonly reason: string };

/** Reads a message's fields. The reason names the field and its valid values. */
export function readPriceRequest(
  message: Pick<GetJobPriceRequest, 'serviceId' | 'jobIndex' | 'requester' | 'inputsHash'>,
): PriceRequestRead {
  const { serviceId, jobIndex, requester, inputsHash } = message;
  if (serviceId > BigInt(maxServiceId)) return invalid(`service_id must be at most ${maxServiceId}`);
  if (jobIndex > BigInt(maxJobIndex)) return invalid(`job_index must be at most ${maxJobIndex}`);
  const wrong = wrongBytes('requester', requester, 20) ?? wrongBytes('inputs_hash', inputsHash, 32);
  if (wrong !== undefined) return invalid(wrong);
  return {
    kind: 'valid',
    request: {
      serviceId: Number(serviceId),
      jobIndex: Number(jobIndex),
      requester: requester.length === 0 ? zeroAddress : bytesToHex(requester),
      inputsHash: inputsHash.length === 0 ? zeroHash : bytesToHex(inputsHash),
    },
  };
}

function invalid(reason: string): PriceRequestRead {
  return { kind: 'invalid', reason };
}

function wrongBytes(name: string, bytes: Uint8Array, length: number): string | undefined {
  if (bytes.length === 0) return undefined;
  if (bytes.length !== length)
    return `${name} must have ${length} bytes or none, not ${bytes.length} (JSON has them as base64)`;
  // it would mean the same as none, and a client that sends it means something else
  return bytes.every((byte) => byte === 0)
    ? `${name} must not be zero: leave it empty for a quote that is not bound`
    : undefined;
}

const noBytes = new Uint8Array();

/** A signed quote as a message. Without an x402 option both of its fields are absent on the wire. */
export function priceMessage(
  operator: Address,
  { quote, digest, signature, x402 }: Priced,
): MessageInitShape<typeof GetJobPriceResponseSchema> {
  const { requester, inputsHash } = quote;
  return {
    quoteDetails: {
      serviceId: BigInt(quote.serviceId),
      jobIndex: BigInt(quote.jobIndex),
      price: bigEndian(quote.priceWei),
      timestamp: BigInt(quote.issuedAt),
      expiry: BigInt(quote.expiresAt),
      requester: requester === zeroAddress ? noBytes : hexToBytes(requester),
      inputsHash: inputsHash === zeroHash ? noBytes : hexToBytes(inputsHash),
      salt: hexToBytes(quote.salt),
      optionsHash: optionsHash(quote.options),
      digest: hexToBytes(digest),
    },
    signature,
    operatorId: hexToBytes(operator),
    settlementOptions: quote.options.map(optionMessage),
    ...(x402?.kind === 'payable' ? { x402Endpoint: x402.endpoint } : {}),
    ...(x402?.kind === 'not_offered' ? { x402Refusal: x402.code } : {}),
  };
}

function optionMessage(option: SettlementOption): MessageInitShape<typeof SettlementOptionSchema> {
  const { network, asset, symbol, amount, payTo, transferMethod, decimals, creditMicros } = option;
  return {
    network,
    asset,
    symbol,
    amount: String(amount),
    payTo,
    scheme: schemes[transferMethod].x402Scheme,
    transferMethod,
    decimals,
    eip712Name: option.eip712Name,
    eip712Version: option.eip712Version,
    ...(creditMicros === undefined ? {} : { creditMicros: String(creditMicros) }),
  };
}

/** Without leading zero bytes. A price is above zero. */
function bigEndian(wei: bigint): Uint8Array {
  const hex = wei.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
}

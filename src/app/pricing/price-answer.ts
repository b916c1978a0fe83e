import type { MessageInitShape } from '@bufbuild/protobuf';
import { hexToBytes } from 'viem/utils';
import { optionsHash, type SettlementOption, zeroAddress, zeroHash } from '../../payments/rules/quote.ts';
import { schemes } from '../../payments/rules/schemes/schemes.ts';
import type { Address } from '../../base/values/primitives.ts';
import type { GetJobPriceResponseSchema, SettlementOptionSchema } from './generated/pricing_pb.ts';
import type { Priced } from './pricing-engine.ts';

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

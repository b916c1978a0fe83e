import { Code, ConnectError, type ConnectRouter, createContextKey } from '@connectrpc/connect';
import type { FairQueue } from './fair-queue.ts';
import {
  PricingService,
  type GetJobPriceResponseSchema,
  type SettlementOptionSchema,
} from './generated/pricing_pb.ts';
import type { PriceRefusal, PricingEngine, Priced } from './pricing-engine.ts';
import { hexToBytes } from 'viem/utils';
import { zeroAddress, zeroHash, optionsHash, type SettlementOption } from '../../payments/rules/quote.ts';
import type { Address } from '../../base/values/primitives.ts';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { schemes } from '../../payments/rules/schemes/schemes.ts';

/** What is logged of a request: ids only. */
export interface PriceFacts {
  service_id?: number;
  job_index?: number;
  quote_digest?: string;
  code?: string;
}

export const priceFacts = createContextKey<PriceFacts>({}, { description: 'what is logged of a request' });

const codes = {
  invalid_request: Code.InvalidArgument,
  unknown_job: Code.NotFound,
  too_many_requests: Code.ResourceExhausted,
  overloaded: Code.Unavailable,
  unavailable: Code.Unavailable,
} as const satisfies Record<PriceRefusal['code'] | 'too_many_requests', Code>;

/** The client: clients share the engine's capacity. */
export const askingClient = createContextKey('', { description: 'the address of the client' });

/** @param turns in which the engine works for its clients */
export function pricingRoutes(engine: PricingEngine, turns: FairQueue) {
  return (router: ConnectRouter): void => {
    router.service(PricingService, {
      async getJobPrice(message, { values }) {
        const facts = values.get(priceFacts);
        const outcome = await turns.take(
          values.get(askingClient),
          () => engine.getJobPrice(message),
          (priced) => priced.kind === 'refused' && priced.code === 'overloaded',
        );
        if (!outcome) throw refusalError(facts, 'too_many_requests', waitReason);
        if (outcome.kind === 'refused') throw refusalError(facts, outcome.code, outcome.reason);
        const { quote, digest } = outcome;
        Object.assign(facts, {
          service_id: quote.serviceId,
          job_index: quote.jobIndex,
          quote_digest: digest,
        });
        return priceMessage(engine.operator, outcome);
      },
    });
  };
}

const waitReason =
  'Too many of your requests wait for an answer. Nothing was charged. Ask again once some were answered.';

function refusalError(facts: PriceFacts, code: keyof typeof codes, reason: string): ConnectError {
  facts.code = code;
  return new ConnectError(reason, codes[code]);
}

const noBytes = new Uint8Array();

/** A signed quote as a message. Without an x402 option both of its fields are absent on the wire. */
function priceMessage(
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

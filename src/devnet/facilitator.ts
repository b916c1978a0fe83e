import type { IncomingMessage } from 'node:http';
import { x402Facilitator } from '@x402/core/facilitator';
import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { ExactEvmScheme } from '@x402/evm/exact/facilitator';
import { ExactEvmSchemeV1 } from '@x402/evm/exact/v1/facilitator';
import { UptoEvmScheme } from '@x402/evm/upto/facilitator';
import { z } from 'zod';
import type { Address } from '../base/values/primitives.ts';
import {
  type Answer,
  HttpProblem,
  type HttpService,
  type ListenOptions,
  listen,
  readBody,
} from './http-service.ts';
import { type SettlementSignerOptions, createSettlementSigner } from './settlement-signer.ts';

export interface FacilitatorOptions extends SettlementSignerOptions, ListenOptions {
  /** It deploys wallets through these before they pay (ERC-6492). Default: none. */
  readonly walletFactories?: readonly Address[];
}

const maxBodyBytes = 64 * 1024;

/** The names x402 version 1 has for chains; version 1 is offered on these only. */
const version1Names: Readonly<Record<number, string>> = { 84_532: 'base-sepolia', 8453: 'base' };

const payloadShape = z.looseObject({ x402Version: z.int(), payload: z.looseObject({}) });
const requirementsShape = z.looseObject({ scheme: z.string(), network: z.string() });

/** As much as the SDK takes for granted, of either version; whether a payment is any good is its own business. */
const paymentCall = z.object({
  paymentPayload: z.custom<PaymentPayload>((value) => payloadShape.safeParse(value).success),
  paymentRequirements: z.custom<PaymentRequirements>((value) => requirementsShape.safeParse(value).success),
});

/**
 * Starts our facilitator for one chain: `POST /verify`, `POST /settle`, `GET /supported`. An invalid
 * payment is answered with 200 and its reason, as facilitators do; 400 is for a body that is not a payment.
 * @throws when the port is taken
 */
export function startFacilitator(options: FacilitatorOptions): Promise<HttpService> {
  const facilitator = createFacilitator(options);
  return listen((request) => answer(facilitator, request), options);
}

function createFacilitator(options: FacilitatorOptions): x402Facilitator {
  const signer = createSettlementSigner(options);
  const config = { eip6492AllowedFactories: [...(options.walletFactories ?? [])] };
  const facilitator = new x402Facilitator().register(
    `eip155:${options.chainId}`,
    new ExactEvmScheme(signer, config),
  );
  facilitator.register(`eip155:${options.chainId}`, new UptoEvmScheme(signer));
  // the scheme submits such approvals itself: the name alone is in /supported
  facilitator.registerExtension({ key: 'eip2612GasSponsoring' });
  const approvals = { key: 'erc20ApprovalGasSponsoring', signer };
  facilitator.registerExtension(approvals);
  const version1Name = version1Names[options.chainId];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the SDK types version 1's names as CAIP-2
  const version1Network = version1Name as `${string}:${string}` | undefined;
  if (version1Network !== undefined)
    facilitator.registerV1(version1Network, new ExactEvmSchemeV1(signer, config));
  return facilitator;
}

async function answer(facilitator: x402Facilitator, request: IncomingMessage): Promise<Answer> {
  switch (`${request.method} ${request.url}`) {
    case 'GET /supported':
      return { status: 200, value: facilitator.getSupported() };
    case 'POST /verify': {
      const { paymentPayload, paymentRequirements } = await readPayment(request);
      return { status: 200, value: await facilitator.verify(paymentPayload, paymentRequirements) };
    }
    case 'POST /settle': {
      const { paymentPayload, paymentRequirements } = await readPayment(request);
      return { status: 200, value: await facilitator.settle(paymentPayload, paymentRequirements) };
    }
    default:
      throw new HttpProblem(404, 'a facilitator answers POST /verify, POST /settle and GET /supported');
  }
}

async function readPayment(request: IncomingMessage): Promise<z.infer<typeof paymentCall>> {
  const parsed = paymentCall.safeParse(parseJson(await readBody(request, maxBodyBytes)));
  if (!parsed.success) throw new HttpProblem(400, z.prettifyError(parsed.error));
  return parsed.data;
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new HttpProblem(400, 'the body is not JSON');
  }
}

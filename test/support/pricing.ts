import path from 'node:path';
import { promisify } from 'node:util';
import grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { onTestFinished } from 'vitest';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import {
  createPricingEngine,
  keySigner,
  type PricingEngineOptions,
  type PricingServer,
  type PricingServerOptions,
  servePricing,
} from '../../src/app/pricing/index.ts';
import type { SettlementOption } from '../../src/payments/rules/quote.ts';
import { root } from './pages.ts';

/** The method's path. */
export const route = '/tollbook.pricing.v1.PricingService/GetJobPrice';
export const operator = keySigner(devnetKeys.payer);
export const prices: ReadonlyMap<string, bigint> = new Map([['1/0', 10n ** 15n]]);

/** A server on its own port. Stopped when the test ends. */
export async function startPricing(
  options: Partial<PricingEngineOptions> = {},
  server: Partial<PricingServerOptions> = {},
): Promise<PricingServer> {
  const engine = createPricingEngine({ prices, signer: operator, ...options });
  const started = await servePricing({ engine, bind: { host: '127.0.0.1', port: 0 }, ...server });
  onTestFinished(async () => void (await started.stop(0)));
  return started;
}

/** As the proto file names the fields. A field that is absent on the wire is absent here. */
export interface PriceAnswer {
  readonly quote_details: Readonly<
    Record<'service_id' | 'job_index' | 'timestamp' | 'expiry', string> &
      Record<'price' | 'digest' | 'salt' | 'options_hash', Buffer> &
      Partial<Record<'requester' | 'inputs_hash', Buffer>>
  >;
  readonly signature: Buffer;
  readonly operator_id: Buffer;
  readonly settlement_options?: readonly Readonly<Record<string, unknown>>[];
  readonly x402_endpoint?: string;
  readonly x402_refusal?: string;
}

export interface PriceAsked {
  readonly service_id?: number | string;
  readonly job_index?: number | string;
  readonly requester?: Uint8Array;
  readonly inputs_hash?: Uint8Array;
}

type Ask = (request: PriceAsked, callback: grpc.requestCallback<PriceAnswer>) => grpc.ClientUnaryCall;

/** A client of grpc-js with the proto file as it is on disk. */
export function grpcClient(url: string): (request?: PriceAsked) => Promise<PriceAnswer> {
  const file = path.join(root, 'proto/tollbook/pricing/v1/pricing.proto');
  const definition = loadSync(file, { keepCase: true, longs: String });
  const service = definition['tollbook.pricing.v1.PricingService'] as grpc.ServiceDefinition;
  const Client = grpc.makeGenericClientConstructor(service, 'PricingService');
  const client = new Client(url.replace('http://', ''), grpc.credentials.createInsecure());
  onTestFinished(() => client.close());
  const ask = (client['GetJobPrice'] as Ask).bind(client);
  return (request = {}) =>
    promisify<PriceAsked, PriceAnswer>((message, done) => {
      ask(message, (error, answer) => done(error, answer as PriceAnswer));
    })({ service_id: 1, job_index: 0, ...request });
}

export const option: SettlementOption = {
  network: 'eip155:84532',
  transferMethod: 'eip3009',
  asset: `0x${'a1'.repeat(20)}`,
  symbol: 'USDC',
  decimals: 6,
  amount: 3_264_000n,
  payTo: `0x${'b2'.repeat(20)}`,
  eip712Name: 'USD Coin',
  eip712Version: '2',
};

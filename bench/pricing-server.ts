/** A server of prices: Tollbook's, or one that answers every request with the same bytes and signs nothing. The argument says which. */
import grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import path from 'node:path';
import { createLogger } from '../src/app/logger.ts';
import { startGateway } from '../src/app/start.ts';
import { loadConfig } from '../src/base/config/load.ts';
import { devnetKeys } from '../src/devnet/accounts.ts';
import { createPricingEngine, keySigner, servePricing } from '../src/app/pricing/index.ts';
import { constantQuote } from './constant-quote.ts';

const [kind = '', configFile = '', databaseUrl = '', receiptKey = ''] = process.argv.slice(2);
const host = '127.0.0.1';

async function startTollbook(): Promise<string> {
  const logger = createLogger('silent');
  const prices = new Map([['1/0', 10n ** 15n]]);
  const signer = keySigner(devnetKeys.payer);
  if (configFile === '') return (await servePricing(listening({ prices, signer }))).url;
  const { config } = await loadConfig(configFile, { RECEIPT_KEY: receiptKey });
  const gateway = await startGateway({ config, databaseUrl, logger });
  return (await servePricing(listening({ prices, signer, x402: gateway.quotes }))).url;
}

const listening = (options: Parameters<typeof createPricingEngine>[0]) => ({
  engine: createPricingEngine(options),
  bind: { host, port: 0 },
});

async function startGrpc(): Promise<string> {
  const proto = path.join(import.meta.dirname, '../proto/tollbook/pricing/v1/pricing.proto');
  const service = loadSync(proto, { keepCase: true })[
    'tollbook.pricing.v1.PricingService'
  ] as grpc.ServiceDefinition;
  const { digest, signature, operator, seconds } = constantQuote;
  const bytes = Buffer.from(digest);
  const quote = {
    service_id: 1,
    price: bytes,
    timestamp: seconds,
    expiry: seconds,
    salt: bytes,
    options_hash: bytes,
    digest: bytes,
  };
  const answer = {
    quote_details: quote,
    signature: Buffer.from(signature),
    operator_id: Buffer.from(operator),
  };
  const getJobPrice: grpc.handleUnaryCall<object, object> = (_, done) => done(null, answer);
  const server = new grpc.Server();
  server.addService(service, { GetJobPrice: getJobPrice });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`${host}:0`, grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return `http://${host}:${port}`;
}

const starts: Readonly<Record<string, () => Promise<string>>> = {
  tollbook: startTollbook,
  'grpc-js': startGrpc,
};
process.on('disconnect', () => process.exit());
process.send?.({ url: await starts[kind]?.() });

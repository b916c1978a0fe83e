/** What the package exports as `tollbook/pricing`, to programs that answer prices. */
export { type Priced, type PriceRefusal, type Prices } from './pricing-engine.ts';
export { createPricingEngine, type PricingEngine, type PricingEngineOptions } from './pricing-engine.ts';
export {
  defaultPricingLimits,
  type PricingServer,
  type PricingServerLimits,
  type PricingServerOptions,
  servePricing,
} from './pricing-server.ts';
export { keySigner, type QuoteSigner } from './signer.ts';
export type { X402Option } from './x402-option.ts';
export { type GetJobPriceRequest, type GetJobPriceResponse, PricingService } from './generated/pricing_pb.ts';

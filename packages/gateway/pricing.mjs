import { complaint } from './node-version.mjs';

if (complaint) throw new Error(complaint);

export const { createPricingEngine, defaultPricingLimits, keySigner, PricingService, servePricing } =
  await import('./dist/app/pricing/index.js');

import { HTTPFacilitatorClient, x402ResourceServer } from '@x402/core/server';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import { terms } from '../terms.ts';

/** The configuration of the x402 middlewares: one route and its price in the token, so that they convert nothing. */
export const routes = {
  [`POST ${terms.path}`]: {
    accepts: {
      scheme: 'exact',
      network: terms.network,
      payTo: terms.payTo,
      price: { asset: terms.asset, amount: terms.amount, extra: terms.eip712 },
      maxTimeoutSeconds: terms.maxTimeoutSecs,
    },
    description: 'Job 1/0',
    mimeType: 'application/json',
  },
};

/** The answer to a paid request: the handler does nothing else. */
export const accepted = { status: 'accepted' };

/** @param {string} facilitatorUrl */
export function resourceServer(facilitatorUrl) {
  return new x402ResourceServer(new HTTPFacilitatorClient({ url: facilitatorUrl })).register(
    terms.network,
    new ExactEvmScheme(),
  );
}

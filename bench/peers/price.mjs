import { HTTPFacilitatorClient, x402ResourceServer } from '@x402/core/server';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import { pathOf, routeNames } from '../routes/terms.ts';
import { terms } from '../terms.ts';

/** EIP-3009 unless the command line names another transfer method. */
const byMethod = process.argv[3] === undefined ? {} : { assetTransferMethod: process.argv[3] };

/** What the x402 middlewares sell, for a price in the token, so that they convert nothing. */
const offer = (description, extra = {}) => ({
  accepts: {
    scheme: 'exact',
    network: terms.network,
    payTo: terms.payTo,
    price: { asset: terms.asset, amount: terms.amount, extra: { ...terms.eip712, ...byMethod, ...extra } },
    maxTimeoutSeconds: terms.maxTimeoutSecs,
  },
  description,
  mimeType: 'application/json',
});

export const routes = { [`POST ${terms.path}`]: offer('Job 1/0') };

/** The paths of an HTTP API. Their own word for "settled before the handler runs" is the flow `upfront`. */
export const proxiedRoutes = Object.fromEntries(
  routeNames.map((route) => [
    `GET ${pathOf(route)}`,
    offer(route, route === 'authorization' ? {} : { paymentFlow: 'upfront' }),
  ]),
);

/** The answer to a paid request: the handler does nothing else. */
export const accepted = { status: 'accepted' };

/** @param {string} facilitatorUrl */
export function resourceServer(facilitatorUrl) {
  return new x402ResourceServer(new HTTPFacilitatorClient({ url: facilitatorUrl })).register(
    terms.network,
    new ExactEvmScheme(),
  );
}

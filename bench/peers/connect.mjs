/** A bare service of Connect for Node, which answers every request for a price alike and signs nothing. */
import { createServer } from 'node:http2';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { PricingService } from '../../src/app/pricing/index.ts';
import { constantQuote } from '../constant-quote.ts';

const { digest, signature, operator, seconds } = constantQuote;
const time = BigInt(seconds);
const quoteDetails = {
  serviceId: 1n,
  price: digest,
  timestamp: time,
  expiry: time,
  salt: digest,
  optionsHash: digest,
  digest,
};
const answer = { quoteDetails, signature, operatorId: operator };

process.on('disconnect', () => process.exit());
const server = createServer(
  connectNodeAdapter({
    routes: (router) => void router.service(PricingService, { getJobPrice: () => answer }),
  }),
);
server.listen(0, '127.0.0.1', () => process.send?.({ url: `http://127.0.0.1:${server.address().port}` }));

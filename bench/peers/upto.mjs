import { HTTPFacilitatorClient, x402ResourceServer } from '@x402/core/server';
import { ExactEvmScheme } from '@x402/evm/exact/server';
import { UptoEvmScheme } from '@x402/evm/upto/server';
import { paymentMiddleware, setSettlementOverrides } from '@x402/express';
import express from 'express';
import { uptoTerms } from '../upto/terms.ts';
import { terms } from '../terms.ts';

const [, , facilitatorUrl = '', asset = ''] = process.argv;
const { most, used, answer } = uptoTerms;

const offer = (scheme, amount) => ({
  accepts: {
    scheme,
    network: terms.network,
    payTo: terms.payTo,
    price: { asset, amount, extra: { name: 'USD Coin', version: '2' } },
    maxTimeoutSeconds: terms.maxTimeoutSecs,
  },
  description: scheme,
  mimeType: 'application/json',
});

const server = new x402ResourceServer(new HTTPFacilitatorClient({ url: facilitatorUrl }))
  .register(terms.network, new ExactEvmScheme())
  .register(terms.network, new UptoEvmScheme());
const app = express();
app.use(paymentMiddleware({ 'GET /exact': offer('exact', used), 'GET /upto': offer('upto', most) }, server));
app.get('/exact', (_request, response) => response.json(answer));
app.get('/upto', (_request, response) => {
  setSettlementOverrides(response, { amount: used });
  response.json(answer);
});

process.on('disconnect', () => process.exit());
const listening = app.listen(0, '127.0.0.1', () =>
  process.send?.({ url: `http://127.0.0.1:${listening.address().port}` }),
);

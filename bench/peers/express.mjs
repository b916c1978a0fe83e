import { paymentMiddleware } from '@x402/express';
import express from 'express';
import { terms } from '../terms.ts';
import { accepted, resourceServer, routes } from './price.mjs';

const app = express();
app.use(paymentMiddleware(routes, resourceServer(process.argv[2] ?? '')));
app.post(terms.path, (_request, response) => response.status(202).json(accepted));

process.on('disconnect', () => process.exit());
const server = app.listen(0, '127.0.0.1', () =>
  process.send?.({ url: `http://127.0.0.1:${server.address().port}` }),
);

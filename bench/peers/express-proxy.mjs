/** The middleware in front of an HTTP API, with the proxy middleware that most Express programs use; it keeps its connections. */
import { Agent } from 'node:http';
import { paymentMiddleware } from '@x402/express';
import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { proxiedRoutes, resourceServer } from './price.mjs';

const [, , facilitatorUrl = '', target = ''] = process.argv;
const app = express();
app.use(paymentMiddleware(proxiedRoutes, resourceServer(facilitatorUrl)));
app.use(createProxyMiddleware({ target, xfwd: true, agent: new Agent({ keepAlive: true }) }));

process.on('disconnect', () => process.exit());
const server = app.listen(0, '127.0.0.1', () =>
  process.send?.({ url: `http://127.0.0.1:${server.address().port}` }),
);

import { serve } from '@hono/node-server';
import { paymentMiddleware } from '@x402/hono';
import { Hono } from 'hono';
import { terms } from '../terms.ts';
import { accepted, resourceServer, routes } from './price.mjs';

const app = new Hono();
app.use(paymentMiddleware(routes, resourceServer(process.argv[2] ?? '')));
app.post(terms.path, (context) => context.json(accepted, 202));

process.on('disconnect', () => process.exit());
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
  process.send?.({ url: `http://127.0.0.1:${port}` }),
);

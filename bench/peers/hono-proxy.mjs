/** The middleware in front of an HTTP API, with hono's own proxy helper as its documentation shows it. */
import { serve } from '@hono/node-server';
import { paymentMiddleware } from '@x402/hono';
import { Hono } from 'hono';
import { proxy } from 'hono/proxy';
import { proxiedRoutes, resourceServer } from './price.mjs';

const [, , facilitatorUrl = '', upstreamUrl = ''] = process.argv;
const app = new Hono();
app.use(paymentMiddleware(proxiedRoutes, resourceServer(facilitatorUrl)));
app.all('*', (context) =>
  proxy(`${upstreamUrl}${context.req.path}`, {
    raw: context.req.raw,
    headers: {
      ...context.req.header(),
      'X-Forwarded-For': '127.0.0.1',
      'X-Forwarded-Host': context.req.header('host'),
    },
  }),
);

process.on('disconnect', () => process.exit());
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
  process.send?.({ url: `http://127.0.0.1:${port}` }),
);

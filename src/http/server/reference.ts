import fastify, { type FastifyInstance } from 'fastify';
import { sendTagged } from '../jobs/etag.ts';
import { openApiDocument, type Part } from '../openapi/document.ts';

/** GET /openapi.json, and GET /docs: a page that shows it and loads nothing from other origins. */
export function referenceRoutes(publicUrl: () => string, parts: readonly Part[]) {
  return async (app: FastifyInstance): Promise<void> => {
    const document = once(async () => JSON.stringify(openApiDocument(publicUrl(), parts)));
    const script = once(readScalar);

    app.get('/openapi.json', async (request, reply) =>
      sendTagged(request, reply, { body: await document(), type: 'application/json' }),
    );
    app.get('/docs', async (_request, reply) =>
      reply
        .headers({ 'content-security-policy': policy, 'referrer-policy': 'no-referrer' })
        .type('text/html; charset=utf-8')
        .send(page),
    );
    app.get('/docs/scalar.js', async (request, reply) =>
      sendTagged(request, reply, { body: await script(), type: 'text/javascript' }),
    );
  };
}

/** Scalar sets inline styles; everything else must come from this origin. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'unsafe-inline'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Every feature of Scalar that would call its vendor, or link to it, is off. */
const configuration = {
  url: 'openapi.json',
  telemetry: false,
  withDefaultFonts: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
  documentDownloadType: 'direct',
  defaultOpenAllTags: true,
};

const page = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Tollbook: API reference</title>
    <link rel="icon" href="data:,">
  </head>
  <body>
    <noscript>This page requires JavaScript. The same content is in <a href="openapi.json">openapi.json</a>.</noscript>
    <script id="api-reference" type="application/json" data-configuration='${JSON.stringify(configuration)}'></script>
    <script src="docs/scalar.js"></script>
  </body>
</html>
`;

/** Scalar's script is 4 MB, and its plugin offers it only by a route: it is loaded at the first request. */
async function readScalar(): Promise<string> {
  const { default: scalar } = await import('@scalar/fastify-api-reference');
  const plugin = fastify();
  await plugin.register(scalar, { routePrefix: '/docs', configuration: { url: 'openapi.json' } });
  const { payload } = await plugin.inject('/docs/js/scalar.js');
  await plugin.close();
  return payload;
}

/** Calls `make` once, at the first use. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

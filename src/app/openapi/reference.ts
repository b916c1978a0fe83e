import type { FastifyInstance } from 'fastify';
import { sendTagged, withTag } from '../../base/http/etag.ts';
import { openApiDocument, type Part } from './document.ts';
import { readReferenceScript } from '../../base/http/reference-script.ts';

/** GET /openapi.json, and GET /docs: a page that shows it and loads nothing from other origins. */
export function referenceRoutes(publicUrl: () => string, parts: readonly Part[]) {
  return async (app: FastifyInstance): Promise<void> => {
    const document = once(async () =>
      withTag({ body: JSON.stringify(openApiDocument(publicUrl(), parts)), type: 'application/json' }),
    );
    const script = once(readReferenceScript);

    // not with the first request for it: it takes as long as a hundred others
    app.addHook('onListen', async () => void (await document()));
    app.get('/openapi.json', async (request, reply) => sendTagged(request, reply, await document()));
    app.get('/docs', async (_request, reply) =>
      reply
        .headers({ 'content-security-policy': policy, 'referrer-policy': 'no-referrer' })
        .type('text/html; charset=utf-8')
        .send(page),
    );
    app.get('/docs/scalar.js', async (request, reply) => sendTagged(request, reply, await script()));
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

/** Calls `make` once, at the first use, and again if that failed. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return async () => {
    made ??= make();
    try {
      return await made;
    } catch (error) {
      made = undefined;
      throw error;
    }
  };
}

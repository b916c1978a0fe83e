import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { sendTagged, withCompressed, withTag } from '../../base/http/etag.ts';
import { staticFile } from '../../base/http/static-file.ts';
import { once } from '../../base/runtime/once.ts';
import { openApiDocument, type Part } from './document.ts';
import type { Audience } from './operation.ts';
import { type ReferenceDocument, referencePage } from './reference-page.ts';

/** GET /openapi.json; GET /docs and /docs/runners: pages that show it, with a script for their Copy buttons alone. Each is made and compressed once. */
export function referenceRoutes(publicUrl: () => string, parts: readonly Part[]) {
  return async (app: FastifyInstance): Promise<void> => {
    const style = staticFile('/docs/reference.css', {
      body: (await Promise.all(['pages.css', 'reference.css'].map(readAsset))).join('\n'),
      type: 'text/css',
    });
    const script = staticFile('/docs/pages.js', {
      body: await readAsset('pages.js'),
      type: 'text/javascript',
    });
    const document = once(async () => openApiDocument(publicUrl(), parts));
    const json = once(async () =>
      withCompressed(withTag({ body: JSON.stringify(await document()), type: 'application/json' })),
    );
    const page = (audience: Audience) =>
      once(async () => {
        const home = app.hasRoute({ url: '/', method: 'GET' }) ? '/' : '/docs';
        const shown = (await document()) as unknown as ReferenceDocument;
        const body = referencePage(shown, {
          audience,
          home,
          stylesheet: style.href,
          script: script.href,
        });
        return withCompressed(withTag({ body, type: 'text/html' }));
      });

    // not with the first request for it: it takes as long as a hundred others
    app.addHook('onListen', async () => void (await document()));
    app.get('/openapi.json', async (request, reply) => sendTagged(request, reply, await json()));
    style.serve(app);
    script.serve(app);
    for (const [path, file] of [
      ['/docs', page('customers')],
      ['/docs/runners', page('operators')],
    ] as const)
      app.get(path, async (request, reply) =>
        sendTagged(
          request,
          reply.headers({ 'content-security-policy': policy, 'referrer-policy': 'no-referrer' }),
          await file(),
        ),
      );
  };
}

function readAsset(name: string): Promise<string> {
  return readFile(new URL(`../../web/pages/assets/${name}`, import.meta.url), 'utf8');
}

/** Only the script of the pages runs; it and the stylesheet come from this origin. */
const policy = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

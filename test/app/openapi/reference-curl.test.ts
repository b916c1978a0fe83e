import { expect, test } from 'vitest';
import { openApiDocument, operationsOf, type Part } from '../../../src/app/openapi/document.ts';
import { type ReferenceDocument, referencePage } from '../../../src/app/openapi/reference-page.ts';

const parts: Part[] = ['x402', 'chat', 'identity', 'audit', 'log'];
const document = openApiDocument('https://jobs.example', parts) as unknown as ReferenceDocument;
const pages = (['customers', 'operators'] as const)
  .map((audience) =>
    referencePage(document, { audience, home: '/', stylesheet: '/style.css', script: '/pages.js' }),
  )
  .join('');

/** The example of an operation, as a shell gets it. */
function exampleOf(id: string): string {
  const [, text = ''] = new RegExp(`id="${id}">.*?<code>(curl .*?)</code>`, 's').exec(pages) ?? [];
  return text.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}

/** By the place of a parameter. */
const isNamed: Readonly<Record<string, (example: string, name: string) => boolean>> = {
  header: (example, name) => example.includes(`-H '${name}: `),
  query: (example, name) => new RegExp(`[?&]${name}=`).test(example),
  path: (example, name) => !example.includes(`{${name}}`),
};

/** The headers that a route requires. */
function headersOf(path: string): string[] {
  const { parameters = [] } = document.paths[path]?.['post'] ?? {};
  return parameters.filter((one) => one.in === 'header' && one.required === true).map(({ name }) => name);
}

test.each(operationsOf(parts).map((operation) => [operation.id, operation] as const))(
  'the example of %s names each header and parameter that its route requires, a content type for its body, and a body that the route takes',
  (id, { path, method, body }) => {
    const example = exampleOf(id);
    expect(example).toMatch(/^curl /);
    const { parameters = [] } = document.paths[path]?.[method] ?? {};
    const required = parameters.filter((one) => one.required === true);
    const unnamed = required.filter(({ name, in: place }) => !isNamed[place]?.(example, name));
    expect(unnamed.map(({ name }) => name)).toEqual([]);
    if (!body) return;
    expect(example).toContain("-H 'content-type: ");
    if ('bytes' in body) return;
    const [, sent = ''] = /-d '(.*)'$/.exec(example) ?? [];
    expect(body.schema.safeParse(JSON.parse(sent)).error?.issues).toBeUndefined();
  },
);

test('the routes of webhooks and of result parts require their headers', () => {
  expect(headersOf('/triggers/webhook/{trigger}')).toEqual([
    'webhook-id',
    'webhook-timestamp',
    'webhook-signature',
  ]);
  expect(headersOf('/runner/calls/{call_id}/result-parts/{part}')).toEqual(['X-Net-Lease-Id']);
});

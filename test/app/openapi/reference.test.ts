import { expect, onTestFinished, test } from 'vitest';
import { operationsOf } from '../../../src/app/openapi/document.ts';
import { hasBrowser, useBrowser } from '../../support/browser.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startTestGateway } from '../../support/gateway.ts';

const chain = useChain();
const page = useBrowser();
const start = async () => startTestGateway({ database: await createDatabase(), chain });

test.skipIf(!hasBrowser)(
  'the reference page shows every route, calls one, and loads nothing from another origin',
  async () => {
    const gateway = await start();
    const tab = await page.browser.newPage({ viewport: { width: 1_280, height: 900 } });
    onTestFinished(() => tab.close());
    const asked: string[] = [];
    const complaints: string[] = [];
    tab.on('request', (request) => asked.push(request.url()));
    tab.on('requestfailed', (request) => complaints.push(`failed: ${request.url()}`));
    tab.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    tab.on('pageerror', (error) => complaints.push(error.message));

    await tab.goto(`${gateway.url}/docs`, { waitUntil: 'networkidle' });
    for (const { summary } of operationsOf(['x402'])) {
      await tab.getByRole('link', { name: summary }).first().click();
      await tab.getByRole('heading', { name: summary }).waitFor();
    }
    await tab.getByRole('link', { name: 'Liveness of the process' }).first().click();
    await tab.getByRole('button', { name: /Test Request.*health/ }).click();
    const answered = tab.waitForResponse(`${gateway.url}/x402/health`);
    await tab.getByRole('button', { name: /^Send/ }).first().click();
    expect((await answered).status()).toBe(200);
    await tab.waitForLoadState('networkidle');

    expect(complaints).toEqual([]);
    expect(asked.length).toBeGreaterThanOrEqual(3);
    for (const url of asked) expect(url).toMatch(new RegExp(`^(?:${gateway.url}/|data:|blob:)`));
  },
);

test('the page may load nothing from other origins', async () => {
  const gateway = await start();
  const { status, headers, text } = await gateway.get('/docs');
  expect(status).toBe(200);
  const policy = headers.get('content-security-policy');
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self';");
  expect(policy).toContain("connect-src 'self';");
  expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
  expect(text).not.toMatch(/https?:\/\//);
});

test('the script is sent once', async () => {
  const gateway = await start();
  const first = await gateway.get('/docs/scalar.js');
  expect(first.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  const etag = first.headers.get('etag') ?? '';
  const again = await gateway.get('/docs/scalar.js', { 'if-none-match': etag });
  expect(again).toMatchObject({ status: 304, text: '' });
});
